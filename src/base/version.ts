import packageJson from "../../package.json" with { type: "json" };

/** Commit of the build, which `bun run build` sets, with `-dirty` if files had changed since; empty if unknown. */
declare const TOLLGATE_COMMIT: string | undefined;

/** Twelve hex digits of the commit, perhaps with `-dirty`; null when run from source or built without git history. */
export const COMMIT: string | null = (typeof TOLLGATE_COMMIT === "string" && TOLLGATE_COMMIT) || null;

/** Version by semver.org: `0.3.0`, or `0.3.0+1a2b3c4d5e6f` with the commit of the build. */
export const VERSION: string = COMMIT === null ? packageJson.version : `${packageJson.version}+${COMMIT}`;
