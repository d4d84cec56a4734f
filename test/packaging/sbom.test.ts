import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { temporaryFolder } from "../support/at-end.ts";
import { type Bom, bomOf } from "./sbom.ts";

const ROOT = join(import.meta.dir, "../..");
const lockText = readFileSync(join(ROOT, "bun.lock"), "utf8");
const bom = bomOf(lockText);
/** Parsed independently of the writer: each package line has its path, then its name with version. */
const locked = [...lockText.matchAll(/^ {4}"[^"]+": \["((?:@[^/"]+\/)?[^@"]+)@([^"]+)"/gm)].map(
	([, name, version]) => `${name}@${version}`,
);
const fullName = ({ group, name, version }: { group?: string; name: string; version: string }) =>
	`${group === undefined ? "" : `${group}/`}${name}@${version}`;

test("the bill of materials has exactly the lock file's packages", () => {
	expect(locked.length).toBeGreaterThan(200);
	expect(new Set(bom.components.map(fullName))).toEqual(new Set(locked));
	expect(bom.components).toHaveLength(new Set(locked).size);
});

test("the bill of materials separates run-time from test packages, with hashes", () => {
	const scopeOf = (name: string, version: string) =>
		bom.components.find((component) => fullName(component) === `${name}@${version}`)?.scope;
	for (const [name, version] of Object.entries(packageJson.dependencies))
		expect([name, scopeOf(name, version)]).toEqual([name, "required"]);
	const { typescript, "@biomejs/biome": biome, "fast-check": check } = packageJson.devDependencies;
	for (const [name, version] of Object.entries({ typescript, "@biomejs/biome": biome, "fast-check": check }))
		expect([name, scopeOf(name, version)]).toEqual([name, "excluded"]);
	for (const { purl, hashes } of bom.components) {
		expect([purl, hashes?.[0]?.content.length]).toEqual([purl, 128]);
		expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@[\w.+-]+$/);
	}
});

test("the bill of materials lists each package once, with its dependencies", () => {
	const refs = bom.components.map((component) => component["bom-ref"]);
	expect(new Set(refs).size).toBe(refs.length);
	const known = new Set([...refs, `pkg:generic/tollgate@${packageJson.version}`]);
	for (const { ref, dependsOn } of bom.dependencies) {
		expect(known.has(ref)).toBe(true);
		expect(dependsOn.filter((one) => !known.has(one))).toEqual([]);
	}
	expect(bom.dependencies).toHaveLength(known.size);
});

test("the bill of materials has the same bytes each time it is written", async () => {
	const folder = temporaryFolder();
	const write = async (name: string) => {
		const path = join(folder, name);
		const child = Bun.spawn([process.execPath, join(import.meta.dir, "sbom.ts"), path], { stdout: "ignore" });
		expect(await child.exited).toBe(0);
		return readFileSync(path, "utf8");
	};
	const [first, second] = [await write("a.json"), await write("b.json")];
	expect(first).toBe(second);
	expect((JSON.parse(first) as Bom).components).toEqual(bom.components as Bom["components"][number][]);
});
