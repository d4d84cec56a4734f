import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./at-end.ts";
import { buildProduct } from "./built-product.ts";

const root = temporaryFolder();
const folder = temporaryFolder();
mkdirSync(join(root, "src", "deep"), { recursive: true });
const write = (path: string, text: string) => writeFileSync(join(root, path), text);
for (const path of ["src/main.ts", "src/deep/part.ts", "package.json", "bun.lock", "tsconfig.json"]) write(path, path);

let builds = 0;
async function build(outfile: string): Promise<string> {
	// Ages are compared in milliseconds.
	await Bun.sleep(2);
	writeFileSync(outfile, `build ${++builds}`);
	return outfile;
}
const built = async (commit = "c") => {
	const product = await buildProduct(folder, { root, commit, build });
	return { ...product, text: readFileSync(product.binary, "utf8") };
};

test("builds a binary per source, reuses it for the same source", async () => {
	const first = await built();
	expect([first.text, (await built()).text]).toEqual(["build 1", "build 1"]);
	const changes: (() => void)[] = [
		() => write("src/deep/part.ts", "changed"),
		() => write("src/deep/.hidden", "new"),
		() => rmSync(join(root, "src/deep/.hidden")),
		() => write("bun.lock", "changed"),
		() => write("package.json", "changed"),
		() => write("bunfig.toml", "new"),
		() => {
			write("src/main.ts", "changed");
			write("src/deep/part.ts", "src/main.ts");
		},
	];
	const texts: string[] = [];
	for (const change of changes) {
		change();
		texts.push((await built()).text);
	}
	// Without the hidden file the source equals the first one and gets its binary.
	expect(texts).toEqual(["build 2", "build 3", "build 2", "build 4", "build 5", "build 6", "build 7"]);
	expect((await built("d")).text).toBe("build 8");
	// A running test keeps its binary even after its removal from the cache.
	expect(readFileSync(first.binary, "utf8")).toBe("build 1");
	expect(readdirSync(folder).filter((name) => name.startsWith("built-"))).toHaveLength(2);
	first.remove();
	expect(existsSync(first.binary)).toBe(false);
});

test("keeps no failed build, none made by another process", async () => {
	const kept = () => readdirSync(folder).sort();
	const before = kept();
	const failing = {
		root,
		commit: "fails",
		build: (outfile: string) => build(outfile).then(() => Promise.reject("no room")),
	};
	expect(await buildProduct(folder, failing).catch((error) => error)).toBe("no room");
	const given = join(root, "given");
	const product = await buildProduct(folder, { root, commit: "given", build: async () => given });
	expect(product.binary).toBe(given);
	product.remove();
	expect(kept()).toEqual(before);
	expect((await built("given")).text).not.toBe("given");
});

test("removes a killed run's files, keeps a running one's", async () => {
	const gone = Bun.spawnSync(["true"]).pid;
	const [killed = "", running = ""] = [gone, process.ppid].map((pid) => mkdtempSync(join(folder, `product-${pid}-`)));
	(await built()).remove();
	expect([existsSync(killed), existsSync(running)]).toEqual([false, true]);
});
