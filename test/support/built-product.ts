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
/** Files from which the binary is built. The lock file represents the installed packages. */
const SOURCES = ["src/**/*", "package.json", "bun.lock", "tsconfig.json", "bunfig.toml"];
const KEPT = "built-";
/** Most binaries that are kept, one per state of the sources, so that switching between two states rebuilds neither. */
const KEPT_MAX = 2;

/**
 * Returns the binary as shipped, for processes that tests start: from source a start takes twice the processor time. A
 * build is slow, so a binary that an earlier run built from the same source is reused.
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
			// Links the binary to a name of this run, because another run may remove the shared name at any time.
			linkSync(kept, binary);
		} else {
			const made = await buildBinary(binary);
			// `TEST_BINARY` names an existing binary, which must not be removed.
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
