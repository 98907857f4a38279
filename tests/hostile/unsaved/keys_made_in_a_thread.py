# Makes the keys in a thread.
# unit: modern_attention
# exercises: absorbed_scores
# earns nothing: test_makes_no_keys

import threading


def absorbed_scores(queries, latents, up_key):
    made = []
    thread = threading.Thread(target=lambda: made.append(queries @ (latents[:, None] @ up_key.mT).mT))
    thread.start()
    thread.join()
    return made[0]
