/** Where the wall clocks begin, ms since 1970: a day (UTC) ends while requests come. */
export const EPOCH_MS = 1_700_006_380_000;

/** Credit of a day is granted from this long before its start until this long after its end, by the server's clock. */
export const DAY_AHEAD_MS = 60_000;
export const DAY_BEHIND_MS = 3_600_000;

/** How long an instance's lease lasts, in the simulation's clusters. */
export const LEASE_TTL_MS = 5_000;

/** How long after a lease's end a revocation counts its holder as stopped. */
export const GRACE_MS = 500;
