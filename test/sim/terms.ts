/** Wall time at the start, in Unix milliseconds, chosen so that a day (UTC) ends during the run. */
export const EPOCH_MS = 1_700_006_380_000;

/** Milliseconds before a day's start and after its end in which its credit is granted, by the database's clock. */
export const DAY_AHEAD_MS = 60_000;
export const DAY_BEHIND_MS = 3_600_000;

/** Length of an instance's lease in milliseconds. */
export const LEASE_TTL_MS = 5_000;

/** Milliseconds after a lease's end until a revocation counts its holder as stopped. */
export const GRACE_MS = 500;
