"""Join what is known of operators that another compiler has made for an NPU."""

from microtir.operators.npu import definition as npu
from microtir.operators.npu import meaning, tflite
from microtir.operators.record import join

RECORDS = join(
    npu.DEFINITIONS,
    {
        npu.EthosU: (meaning.ethos_u, None),
    },
    tflite.READERS,
)
