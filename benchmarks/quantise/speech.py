"""Ten words, spoken by espeak-ng with many voices and speeds, with noise, as cepstra.

Needs the program espeak-ng (Debian has it as a package).  The features are those of MLPerf Tiny's
keyword spotting: ten cepstral coefficients of 40 mel bands, of windows of 30 ms every 20 ms, of a
second of 16 kHz.
"""

from __future__ import annotations

import io
import itertools
import subprocess
import tempfile
import wave
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.quantise.tasks import Array

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
FRAMES, COEFFICIENTS = 49, 10
_VOICES = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp")
_VARIANTS = ("m1", "m3", "m5", "m7", "f1", "f2", "f4", "croak")
_SPEEDS = (120, 150, 180, 220, 260)  # words a minute
_RATE, _WINDOW, _STEP, _BANDS = 16_000, 480, 320, 40
_NOISE = -5.0, 10.0  # dB of the speech above it


@dataclass(frozen=True, slots=True)
class Speech:
    """Features (samples, 1, frames, coefficients), and the place of each word."""

    data: Array
    target: Array


@cache
def load_speech() -> Speech:
    """Return every word by every voice at every speed, with noise of random strength.

    Raises:
        FileNotFoundError: espeak-ng is not installed.
    """
    random = np.random.default_rng(0)
    features, labels = [], []
    for label, word in enumerate(WORDS):
        for voice, variant, speed in itertools.product(_VOICES, _VARIANTS, _SPEEDS):
            clip = _placed(_spoken(word, f"{voice}+{variant}", speed), random)
            features.append(_cepstra(_noisy(clip, random)))
            labels.append(label)
    return Speech(np.stack(features)[:, None].astype(np.float32), np.array(labels))


def _spoken(word: str, voice: str, speed: int) -> Array:
    """Return a word as espeak-ng says it, at 16 kHz, from -1 to 1."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "word.wav"
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", path, word], check=True)
        with wave.open(io.BytesIO(path.read_bytes())) as file:
            rate, frames = file.getframerate(), file.readframes(file.getnframes())
    samples = np.frombuffer(frames, np.int16).astype(np.float64) / 32768
    places = np.arange(0, len(samples), rate / _RATE)
    return np.interp(places, np.arange(len(samples)), samples)


def _placed(samples: Array, random: np.random.Generator) -> Array:
    """Return a second with the word somewhere in it."""
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    word = samples[loud[0] : loud[-1] + 1][:_RATE]
    first = random.integers(_RATE - len(word) + 1)
    clip = np.zeros(_RATE)
    clip[first : first + len(word)] = word
    return clip


def _noisy(clip: Array, random: np.random.Generator) -> Array:
    """Return a clip with noise whose spectrum falls by a random power of the frequency."""
    spectrum = np.fft.rfft(random.standard_normal(len(clip)))
    spectrum /= np.maximum(np.arange(len(spectrum)), 20) ** random.uniform(0, 1)
    noise = np.fft.irfft(spectrum, len(clip))
    wanted = np.sqrt(np.mean(clip**2)) * 10 ** (-random.uniform(*_NOISE) / 20)
    noisy: Array = clip + noise * wanted / np.sqrt(np.mean(noise**2))
    return noisy


def _cepstra(clip: Array) -> Array:
    """Return the cepstra of the windows of a clip."""
    starts = np.arange(FRAMES)[:, None] * _STEP
    windows = clip[starts + np.arange(_WINDOW)] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(windows, 512)) ** 2
    bands = np.log(power @ _mel_bands() + 1e-6)
    return np.asarray(bands @ _cosines())


@cache
def _cosines() -> Array:
    """Return the orthonormal cosine transform (bands, coefficients), type II."""
    places = (np.arange(_BANDS)[:, None] + 0.5) * np.arange(COEFFICIENTS) * np.pi / _BANDS
    scales = np.sqrt(np.where(np.arange(COEFFICIENTS) == 0, 1, 2) / _BANDS)
    return np.asarray(np.cos(places) * scales)


@cache
def _mel_bands() -> Array:
    """Return the weights (bins, bands) of triangles that are evenly spaced on the mel scale."""

    def mel(hertz: float) -> float:
        return float(2595 * np.log10(1 + hertz / 700))

    edges = 700 * (10 ** (np.linspace(mel(20), mel(4000), _BANDS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(512, 1 / _RATE)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(np.minimum(rising, falling), 0)
