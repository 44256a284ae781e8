pub(crate) const BUMPS_PER_LOOP: u32 = 16;
