/**
 * Writes the bill of materials of the program from the lock file as CycloneDX 1.6 JSON (https://cyclonedx.org): each
 * package with version, origin, hash and dependencies. The same lock file gives the same bytes. `bun run sbom [FILE]`,
 * default `dist/tollgate.cdx.json`.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "jsonc-parser";
import packageJson from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");

/**
 * An entry of `bun.lock` version 2: name with version, source, dependencies, and the hash as in `package-lock.json`.
 */
type LockEntry = readonly [
	string,
	string,
	{ readonly dependencies?: Names; readonly optionalDependencies?: Names },
	string?,
];
type Names = Readonly<Record<string, string>>;
interface Lock {
	readonly workspaces: Readonly<Record<string, { readonly dependencies?: Names; readonly devDependencies?: Names }>>;
	readonly packages: Readonly<Record<string, LockEntry>>;
}

export interface Bom {
	readonly components: readonly {
		readonly "bom-ref": string;
		readonly name: string;
		readonly version: string;
		readonly purl: string;
		readonly scope: "required" | "excluded";
		readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
	}[];
	readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
	readonly [field: string]: unknown;
}

/** `excluded`: packages for development and tests, which are not in the program. */
export function bomOf(lockText: string): Bom {
	const lock = parse(lockText, [], { allowTrailingComma: true }) as Lock;
	const root = lock.workspaces[""] ?? {};
	const needs = new Map(Object.keys(lock.packages).map((place) => [place, neededBy(lock, place)]));
	const required = reachable(needs, Object.keys(root.dependencies ?? {}));
	const components = new Map<string, Bom["components"][number]>();
	const dependencies = new Map<string, Set<string>>();
	for (const [place, entry] of Object.entries(lock.packages)) {
		const ref = purlOf(entry);
		// A package may be installed at several places.
		const isRequired = required.has(place) || components.get(ref)?.scope === "required";
		components.set(ref, componentOf(entry, isRequired ? "required" : "excluded"));
		const known = dependencies.get(ref) ?? new Set();
		for (const needed of needs.get(place) ?? []) known.add(purlOf(lock.packages[needed] as LockEntry));
		dependencies.set(ref, known);
	}
	const self = `pkg:generic/${packageJson.name}@${packageJson.version}`;
	const direct = Object.keys({ ...root.dependencies, ...root.devDependencies }).map((name) =>
		purlOf(lock.packages[name] as LockEntry),
	);
	const sorted = [...components.values()].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1));
	return {
		$schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
		bomFormat: "CycloneDX",
		specVersion: "1.6",
		serialNumber: `urn:uuid:${uuidOf(lockText)}`,
		version: 1,
		metadata: {
			component: {
				type: "application",
				"bom-ref": self,
				name: packageJson.name,
				version: packageJson.version,
				licenses: [{ license: { id: packageJson.license } }],
			},
		},
		components: sorted,
		dependencies: [
			{ ref: self, dependsOn: [...new Set(direct)].sort() },
			...sorted.map(({ "bom-ref": ref }) => ({ ref, dependsOn: [...(dependencies.get(ref) ?? [])].sort() })),
		],
	};
}

function componentOf(entry: LockEntry, scope: "required" | "excluded"): Bom["components"][number] {
	const { name, version } = nameOf(entry);
	const [group, base] = name.startsWith("@") ? name.split("/") : [undefined, name];
	const hash = entry.find((part): part is string => typeof part === "string" && /^sha512-/.test(part));
	return {
		type: "library",
		"bom-ref": purlOf(entry),
		...(group === undefined ? {} : { group }),
		name: base ?? name,
		version,
		purl: purlOf(entry),
		scope,
		...(hash === undefined
			? {}
			: { hashes: [{ alg: "SHA-512", content: Buffer.from(hash.slice(7), "base64").toString("hex") }] }),
	} as Bom["components"][number];
}

function nameOf([text]: LockEntry): { name: string; version: string } {
	const at = text.lastIndexOf("@");
	return { name: text.slice(0, at), version: text.slice(at + 1) };
}

function purlOf(entry: LockEntry): string {
	const { name, version } = nameOf(entry);
	return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** Places of the dependencies of the package at `place`: its own copy, otherwise the copy of its nearest parent. */
function neededBy(lock: Lock, place: string): string[] {
	const facts = lock.packages[place]?.find((part) => typeof part === "object") as LockEntry[2] | undefined;
	const names = Object.keys({ ...facts?.dependencies, ...facts?.optionalDependencies });
	return names.flatMap((name) => {
		for (let above = place; ; above = above.slice(0, Math.max(0, above.lastIndexOf("/")))) {
			const candidate = above === "" ? name : `${above}/${name}`;
			if (lock.packages[candidate] !== undefined) return [candidate];
			// A missing optional dependency is for another platform.
			if (above === "") return [];
		}
	});
}

function reachable(needs: ReadonlyMap<string, readonly string[]>, from: readonly string[]): ReadonlySet<string> {
	const seen = new Set<string>();
	const open = [...from];
	for (let place = open.pop(); place !== undefined; place = open.pop()) {
		if (seen.has(place)) continue;
		seen.add(place);
		open.push(...(needs.get(place) ?? []));
	}
	return seen;
}

/** A UUID derived from the lock file, so that the same file gives the same UUID. */
function uuidOf(text: string): string {
	const hex = new Bun.CryptoHasher("sha256").update(text).digest("hex");
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

if (import.meta.main) {
	const path = process.argv[2] ?? join(ROOT, "dist/tollgate.cdx.json");
	mkdirSync(dirname(path), { recursive: true });
	const bom = bomOf(await Bun.file(join(ROOT, "bun.lock")).text());
	await Bun.write(path, `${JSON.stringify(bom, null, "\t")}\n`);
	console.log(`${path}: ${bom.components.length} packages`);
}
