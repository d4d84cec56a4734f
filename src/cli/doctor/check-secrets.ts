import fs from "node:fs";
import { join } from "node:path";
import { isAlias, isScalar, parseDocument, visit } from "yaml";
import type { Config } from "../../config.ts";
import { isLoopback } from "../../gateway/client-address.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

const MAKE_ONE = "`openssl rand -hex 32` makes a good one.";
/** Anything that was made by chance has more. */
const DISTINCT_CHARS_MIN = 10;

/** Whether secrets are there, good and closed to others. Looks, and makes none. */
export function checkSecrets(config: Config, catalogText: string | undefined): readonly Finding[] {
	const found = findingsOf("secrets");
	for (const [name, secret, change] of secretsOf(config)) {
		if (secret !== null && new Set(secret).size < DISTINCT_CHARS_MIN)
			found.warn(`${name} does not look as if it was made by chance`, `${change} ${MAKE_ONE}`);
	}
	if (config.keyPepper !== null && config.keyPepper === config.consoleSecret)
		found.warn(
			"KEY_PEPPER and CONSOLE_SECRET are the same: who learns one has both",
			`Set CONSOLE_SECRET to another one: it only ends the sessions. ${MAKE_ONE}`,
		);
	if (config.keyPepper === null) checkKept(join(config.dataDir, "secrets.json"), found);
	if (config.consoleSecret === null && config.role !== "gateway")
		checkClosed(join(config.dataDir, "console-secret"), found);
	if (config.metricsToken === null && !isLoopback(config.host) && config.host !== "localhost")
		found.warn(
			`/metrics is open to whoever reaches ${config.host}:${config.port}`,
			"Set METRICS_TOKEN, or close it at the proxy.",
		);
	if (catalogText !== undefined) checkCatalogKeys(config.configPath ?? "", catalogText, found);
	if (found.list.length === 0)
		found.ok(config.consoleSecret === null ? "KEY_PEPPER is set" : "KEY_PEPPER and CONSOLE_SECRET are set");
	return found.list;
}

/** Each secret that somebody may have thought up, and how another one takes its place. */
function secretsOf({ keyPepper, consoleSecret, internalSecret, metricsToken }: Config) {
	const early = "Make another one before the service has keys and sessions.";
	return [
		["KEY_PEPPER", keyPepper, early],
		["CONSOLE_SECRET", consoleSecret, early],
		["INTERNAL_SECRET", internalSecret, "Give gateways and console another one, the same to all."],
		["METRICS_TOKEN", metricsToken, "Make another one, and tell it to whoever reads /metrics."],
	] as const;
}

function checkKept(path: string, found: ReturnType<typeof findingsOf>): void {
	if (!fs.existsSync(path)) {
		found.note(`secrets will be made at the first start and kept in ${path}`);
		return;
	}
	try {
		const { key_pepper } = JSON.parse(fs.readFileSync(path, "utf8")) as Record<string, unknown>;
		if (typeof key_pepper !== "string") throw new Error("the pepper is missing in it");
		if (checkClosed(path, found))
			found.ok(`secrets were made at the first start and are kept in ${path}: back it up with the database`);
	} catch (error) {
		found.broken(
			`${path} cannot be used: ${reasonOf(error)}`,
			"Restore it from a backup: without its pepper no stored key works.",
		);
	}
}

/** False if it is there and others can read it. */
function checkClosed(path: string, found: ReturnType<typeof findingsOf>): boolean {
	const open = fs.existsSync(path) && (fs.statSync(path).mode & 0o077) !== 0;
	if (open) found.warn(`${path} can be read by others`, `chmod 600 ${path}`);
	return !open;
}

/** A key that stands in the file as it is goes wherever the file goes. */
function checkCatalogKeys(path: string, text: string, found: ReturnType<typeof findingsOf>): void {
	const written = writtenKeys(text);
	if (written > 0)
		found.warn(
			`${path} has ${written === 1 ? "a key" : `${written} keys`} of model servers in it`,
			`Put each into an environment variable, and write \${VLLM_API_KEY}, or what you call it, in its place.`,
		);
}

/** As YAML has them, quoted names, JSON and values on lines of their own too, and as far as a file with mistakes can be read. */
function writtenKeys(text: string): number {
	const document = parseDocument(text, { uniqueKeys: false, logLevel: "silent" });
	let written = 0;
	visit(document, {
		Pair(_, { key, value }) {
			if (!isScalar(key) || key.value !== "api_key") return;
			const node = isAlias(value) ? value.resolve(document) : value;
			if (isScalar(node) && /^\s*(?!\$\{)\S/.test(String(node.value ?? ""))) written += 1;
		},
	});
	return written;
}
