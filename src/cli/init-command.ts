import fs from "node:fs";
import { resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { checkCatalog } from "../catalog/check.ts";
import { describeProblems } from "../catalog/file.ts";
import { discover, USUAL_PORTS } from "../demo/discover.ts";
import { formatCatalogFile } from "./catalog-template.ts";
import { type CommandRuns, UsageError } from "./command.ts";

const DEFAULT_FILE = "tollgate.yaml";
/** A server that is loading a model answers slowly. */
const ASK_MS = 3_000;
const PORTS_MAX = 64;

export const initCommand: CommandRuns = {
	async init({ env, log }, input) {
		const path = resolve(input.optionalArgument(0) ?? DEFAULT_FILE);
		const force = input.flag("force");
		if (!force && fs.existsSync(path)) throw alreadyThere(path);
		const ports = portsOf(input.option("ports"));
		const found = await discover({ clock: systemClock, log }, { ports, timeoutMs: ASK_MS });
		const text = formatCatalogFile({ ...found, ports });
		const check = checkCatalog(text, env);
		// A found name may contain `${…}`, for example.
		if (!check.ok) throw new Fault("conflict", describeProblems(check.problems));
		write(path, text, force);
		const models = found.models.map(({ id, kind, upstreams }) => ({ id, kind, urls: upstreams.map(({ url }) => url) }));
		const servers = found.servers.map(({ origin, product }) => ({ url: origin, product }));
		return { json: { file: path, models, servers }, text: summary(path, models, servers, ports) };
	},
};

function portsOf(text: string | undefined): readonly number[] {
	if (text === undefined) return USUAL_PORTS;
	const ports = text.split(",").map(Number);
	if (ports.length > PORTS_MAX || ports.some((port) => !Number.isInteger(port) || port < 1 || port > 65_535))
		throw new UsageError("--ports takes numbers from 1 to 65535, separated by commas");
	return [...new Set(ports)];
}

/** With `force` the file is replaced atomically. Without it an existing file stays. */
function write(path: string, text: string, force: boolean): void {
	const unfinished = `${path}.${process.pid}`;
	try {
		writeNew(force ? unfinished : path, text);
		if (force) fs.renameSync(unfinished, path);
	} catch (error) {
		if (!force && (error as NodeJS.ErrnoException).code === "EEXIST") throw alreadyThere(path);
		throw error;
	} finally {
		if (force) fs.rmSync(unfinished, { force: true });
	}
}

/** A partial file would block the next attempt, and a server would read it as its catalogue. */
function writeNew(path: string, text: string): void {
	const file = fs.openSync(path, "wx");
	try {
		fs.writeFileSync(file, text, { flush: true });
	} catch (error) {
		fs.rmSync(path, { force: true });
		throw error;
	} finally {
		fs.closeSync(file);
	}
}

function alreadyThere(path: string): Fault {
	return new Fault("conflict", `${path} already exists. Use --force to replace it.`);
}

function summary(
	path: string,
	models: readonly { readonly id: string; readonly urls: readonly string[] }[],
	servers: readonly { readonly url: string; readonly product: string }[],
	ports: readonly number[],
): string {
	const productOf = (url: string) => servers.find((server) => url.startsWith(`${server.url}/`))?.product ?? "";
	const shown = models.map(({ id, urls }) => `  ${id} (${urls.map((url) => `${productOf(url)}, ${url}`).join("; ")})`);
	const none = [
		`  No model server answered on ports ${ports.join(", ")}. Add yours to the file; it contains an example.`,
	];
	return [
		`Wrote ${path} with ${models.length === 1 ? "1 model" : `${models.length} models`}:`,
		...(models.length === 0 ? none : shown),
		"",
		"Next: set your rates in the file, start `tollgate serve` in its folder, and create accounts (`tollgate help account create`).",
		"The file switches the demo off: the service starts with empty books.",
	].join("\n");
}
