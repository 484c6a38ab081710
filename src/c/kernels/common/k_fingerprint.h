/* k_fingerprint.h: which loop of k_fingerprint.c runs, for tests. */
#ifndef LOPK_FINGERPRINT_H
#define LOPK_FINGERPRINT_H

/* 0 the plain one, 1 with vectors of two words, 2 of four where the CPU has them. All give the
 * same. */
extern int lopk_fingerprint_force;

#endif
