import packageJson from "../../package.json" with { type: "json" };

/** Commit of the build, set by `bun run build`, with `-dirty` if files differed from it; empty if unknown. */
declare const TOLLGATE_COMMIT: string | undefined;

/** Twelve hex digits, perhaps with `-dirty`; null when run from source or built without a history. */
export const COMMIT: string | null = (typeof TOLLGATE_COMMIT === "string" && TOLLGATE_COMMIT) || null;

/** Version by semver.org: `0.3.0`, or `0.3.0+1a2b3c4d5e6f` with the build's commit. */
export const VERSION: string = COMMIT === null ? packageJson.version : `${packageJson.version}+${COMMIT}`;
