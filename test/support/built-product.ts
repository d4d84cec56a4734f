import {
	existsSync,
	linkSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	utimesSync,
} from "node:fs";
import { join } from "node:path";
import { buildBinary, builtCommit } from "../packaging/build-binary.ts";
import { isRunning } from "./processes.ts";

const ROOT = join(import.meta.dir, "../..");
/** What the binary is made from. Packages are those of the lock file. */
const SOURCES = ["src/**/*", "package.json", "bun.lock", "tsconfig.json", "bunfig.toml"];
const KEPT = "built-";
/** Of as many sources binaries are kept: who changes back and forth between two builds neither anew. */
const KEPT_MAX = 2;

interface Building {
	readonly root: string;
	readonly commit: string;
	readonly build: (outfile: string) => Promise<string>;
}

/**
 * The binary as it is shipped, for processes that a run of the tests starts: from source each start takes twice the work.
 * It lies in `folder`, from which programs can be run, until it is removed. One that a former run has built from the same
 * source is taken again, as to build it takes longer than many a part of the tests.
 */
export async function buildProduct(
	folder: string,
	{ root, commit, build }: Building = { root: ROOT, commit: builtCommit(), build: buildBinary },
): Promise<{ readonly binary: string; remove(): void }> {
	for (const name of readdirSync(folder)) {
		const owner = /^product-(\d+)-/.exec(name)?.[1];
		if (owner !== undefined && !isRunning(Number(owner))) rmSync(join(folder, name), { recursive: true, force: true });
	}
	const home = mkdtempSync(join(folder, `product-${process.pid}-`));
	const remove = () => rmSync(home, { recursive: true, force: true });
	const binary = join(home, "tollgate");
	const kept = join(folder, `${KEPT}${digestOf(root, commit)}`);
	try {
		if (existsSync(kept)) {
			// The run has a name of its own for it: the other may be removed meanwhile.
			linkSync(kept, binary);
		} else {
			const made = await build(binary);
			// Another one, which the caller has named: that is nobody's to keep.
			if (made !== binary) return { binary: made, remove };
			linkSync(binary, join(home, "kept"));
			renameSync(join(home, "kept"), kept);
		}
		utimesSync(kept, new Date(), new Date());
		removeOldest(folder);
		return { binary, remove };
	} catch (error) {
		remove();
		throw error;
	}
}

function digestOf(root: string, commit: string): string {
	const hash = new Bun.CryptoHasher("sha256");
	hash.update(JSON.stringify([Bun.version, Bun.revision, process.platform, process.arch, commit]));
	for (const path of SOURCES.flatMap((one) => [...new Bun.Glob(one).scanSync({ cwd: root, dot: true })].sort())) {
		const bytes = readFileSync(join(root, path));
		hash.update(`${path}\0${bytes.length}\0`);
		hash.update(bytes);
	}
	return hash.digest("hex").slice(0, 16);
}

function removeOldest(folder: string): void {
	const kept = readdirSync(folder).filter((name) => name.startsWith(KEPT));
	const usedAtMs = (name: string) => statSync(join(folder, name)).mtimeMs;
	const newestFirst = kept.sort((a, b) => usedAtMs(b) - usedAtMs(a));
	for (const name of newestFirst.slice(KEPT_MAX)) rmSync(join(folder, name), { force: true });
}
