"""Every tagger beside the algorithms of CRFsuite, on corpora of different kinds."""
