/** How long an instance's lease lasts, in the simulation's clusters. */
export const LEASE_TTL_MS = 5_000;

/** How long behind a lease's end a revocation takes its holder for stopped. */
export const GRACE_MS = 500;
