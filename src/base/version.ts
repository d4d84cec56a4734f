import packageJson from "../../package.json" with { type: "json" };

/** Put in by `bun run build`: the commit that was built, with `-dirty` if files differed from it; empty if unknown. */
declare const TOLLGATE_COMMIT: string | undefined;

/** Twelve hexadecimal digits, perhaps `-dirty`; null from source and where the build had no history. */
export const COMMIT: string | null = (typeof TOLLGATE_COMMIT === "string" && TOLLGATE_COMMIT) || null;

/** After semver.org: `0.3.0`, or `0.3.0+1a2b3c4d5e6f` with the build's commit. CHANGELOG.md says what each one brings. */
export const VERSION: string = COMMIT === null ? packageJson.version : `${packageJson.version}+${COMMIT}`;
