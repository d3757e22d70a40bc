/* text.h: printing without printf, whose float formats need a heap on some C libraries. */
#ifndef TEXT_H
#define TEXT_H

#include <stdint.h>

void text_write(const char *text);
void text_unsigned(uint64_t value);
void text_signed(int64_t value);

/* Seven significant digits, as 1.234567e-05; nan, inf and -inf. */
void text_real(double value);

#endif /* TEXT_H */
