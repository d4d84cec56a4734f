import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The last commit of version 0.1, which must run beside this one. When a version is released, its commit comes here.
 */
export const FORMER_COMMIT = "05793e3bd48bcd5723540cc865971bb3c2d261c3";

const ROOT = join(import.meta.dir, "../..");

/** The former version's source in a folder of its own, with the packages of this one. */
export interface FormerVersion {
	/** Its program: `bun <main> serve`. */
	readonly main: string;
	remove(): void;
}

/** Why it cannot be had, in words: a clone without its history, or packages that it needs and this version does not. */
export type Missing = { readonly missing: string };

/** Takes the former version from the history. */
export function takeFormerVersion(): FormerVersion | Missing {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-former-"));
	const remove = () => rmSync(folder, { recursive: true, force: true });
	const give = (missing: string): Missing => {
		remove();
		return { missing };
	};
	const archive = Bun.spawnSync(["git", "archive", FORMER_COMMIT, "src", "package.json", "tsconfig.json"], {
		cwd: ROOT,
	});
	if (!archive.success) return give(`the history does not have ${FORMER_COMMIT}: ${archive.stderr.toString().trim()}`);
	const unpacked = Bun.spawnSync(["tar", "-x", "-C", folder], { stdin: archive.stdout });
	if (!unpacked.success) return give(`it could not be unpacked: ${unpacked.stderr.toString().trim()}`);
	const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
	const absent = Object.keys(dependencies).filter((name) => !existsSync(join(ROOT, "node_modules", name)));
	if (absent.length > 0) return give(`this version does not install ${absent.join(", ")}`);
	symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
	return { main: join(folder, "src/main.ts"), remove };
}
