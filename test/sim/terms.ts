/** Wall time at the start, in ms since 1970: a day (UTC) ends during the run. */
export const EPOCH_MS = 1_700_006_380_000;

/** A day's credit is granted from this long before its start until this long after its end, by the database's clock. */
export const DAY_AHEAD_MS = 60_000;
export const DAY_BEHIND_MS = 3_600_000;

/** Length of a lease in the simulation, in ms. */
export const LEASE_TTL_MS = 5_000;

/** Time after a lease's end until a revocation counts the holder as stopped, in ms. */
export const GRACE_MS = 500;
