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
/** Files that the binary is made from; the lock file stands for the installed packages. */
const SOURCES = ["src/**/*", "package.json", "bun.lock", "tsconfig.json", "bunfig.toml"];
const KEPT = "built-";
/** Number of sources whose binaries are kept, so that switching between two rebuilds neither. */
const KEPT_MAX = 2;

/**
 * The binary as shipped, for processes that tests start: a start from source takes twice the processor time. A build is
 * slow, so a binary of the same source from an earlier run is reused.
 */
export async function buildProduct(folder: string): Promise<{ readonly binary: string; remove(): void }> {
	for (const name of readdirSync(folder)) {
		const owner = /^product-(\d+)-/.exec(name)?.[1];
		if (owner !== undefined && !isRunning(Number(owner))) rmSync(join(folder, name), { recursive: true, force: true });
	}
	const home = mkdtempSync(join(folder, `product-${process.pid}-`));
	const remove = () => rmSync(home, { recursive: true, force: true });
	const binary = join(home, "tollgate");
	const kept = join(folder, `${KEPT}${sourceDigest()}`);
	try {
		if (existsSync(kept)) {
			// A hard link under this run's own name, since another run may remove the other name at any time.
			linkSync(kept, binary);
		} else {
			const made = await buildBinary(binary);
			// The caller chose this binary, so it is not removed.
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

function sourceDigest(): string {
	const hash = new Bun.CryptoHasher("sha256");
	hash.update(JSON.stringify([Bun.version, Bun.revision, process.platform, process.arch, builtCommit()]));
	for (const path of SOURCES.flatMap((one) => [...new Bun.Glob(one).scanSync({ cwd: ROOT, dot: true })].sort())) {
		const bytes = readFileSync(join(ROOT, path));
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
