import packageJson from "../../package.json" with { type: "json" };

/** Set by `bun run build`: the built commit, with `-dirty` if files differed from it; empty if unknown. */
declare const TOLLGATE_COMMIT: string | undefined;

/** Twelve hexadecimal digits, perhaps `-dirty`; null from source and without a history at build time. */
export const COMMIT: string | null = (typeof TOLLGATE_COMMIT === "string" && TOLLGATE_COMMIT) || null;

/** After semver.org: `0.3.0`, or `0.3.0+1a2b3c4d5e6f` with the build's commit. CHANGELOG.md lists the changes. */
export const VERSION: string = COMMIT === null ? packageJson.version : `${packageJson.version}+${COMMIT}`;
