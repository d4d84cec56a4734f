/** The start of the wall clocks, ms since 1970: a day (UTC) ends during the traffic. */
export const EPOCH_MS = 1_700_006_380_000;

/** A day's credit is granted from this long before its start until this long after its end, by the server's clock. */
export const DAY_AHEAD_MS = 60_000;
export const DAY_BEHIND_MS = 3_600_000;

/** The length of an instance's lease in the simulation's clusters. */
export const LEASE_TTL_MS = 5_000;

/** The time after a lease's end when a revocation counts its holder as stopped. */
export const GRACE_MS = 500;
