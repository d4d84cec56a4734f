import { Fault } from "../base/fault.ts";
import { type Config, ConfigError } from "../config.ts";
import { embeddedExists } from "../db/embedded.ts";
import { findPostgresBinaries } from "../db/postgres-binaries.ts";
import { reachableUrl } from "../planes/listening-address.ts";
import type { CommandContext, CommandRuns } from "./command.ts";
import { checkDatabase } from "./doctor/check-database.ts";
import { checkAddress, checkDisk } from "./doctor/check-machine.ts";
import { checkMail, checkPayments } from "./doctor/check-partners.ts";
import { checkUpstreams } from "./doctor/check-upstreams.ts";
import { CHECKS, type CheckName, createFindings, type Finding } from "./doctor/finding.ts";
import { printable } from "./printable.ts";

const HEALTH_DEADLINE_MS = 5_000;

export const doctorCommands: CommandRuns = {
	async doctor(context) {
		const findings = (await examine(context)).toSorted((a, b) => CHECKS.indexOf(a.area) - CHECKS.indexOf(b.area));
		const ok = findings.every(({ state }) => state !== "broken");
		const paged = findings.map((finding) => ({ ...finding, page: pageOf(finding.area) }));
		return { json: { ok, findings: paged }, text: format(findings), exitCode: ok ? 0 : 1 };
	},
	async health({ config }, input) {
		const path = input.flag("ready") ? "/readyz" : "/livez";
		const { host, port } = config();
		const response = await askHealth(`${reachableUrl(host, port)}${path}`);
		const text = (await response.text()).trim();
		return {
			json: { ok: response.ok, status: response.status, answer: text },
			text: `${path}: ${response.status} ${text}`,
			exitCode: response.ok ? 0 : 1,
		};
	},
};

async function examine(context: CommandContext): Promise<readonly Finding[]> {
	const found = createFindings("configuration");
	let config: Config;
	try {
		config = context.config();
	} catch (error) {
		if (!(error instanceof ConfigError)) throw error;
		for (const problem of error.problems) found.broken(problem, "`tollgate help` describes each variable.");
		return found.list;
	}
	const { role, production, demo } = config;
	found.ok(`${production ? "production" : demo ? "demo" : "development"}, ROLE=${role}, WORKERS=${config.workers}`);
	for (const warning of config.warnings) found.warn(warning, "Change it unless it is intended.");
	const checks: [CheckName, () => readonly Finding[] | Promise<readonly Finding[]>][] = [
		["database", () => onDatabase(context, config)],
		["disk", () => checkDisk(config)],
		["address", () => checkAddress(config)],
	];
	if (role !== "console") checks.push(["upstreams", () => checkUpstreams(config)]);
	if (role !== "gateway") checks.push(["mail", () => checkMail(config)], ["payments", () => checkPayments(config)]);
	const results = await Promise.all(checks.map(([name, check]) => guarded(name, check)));
	return [...found.list, ...results.flat()];
}

/** Turns an exception of one check into a finding, so that the other checks still run. */
async function guarded(name: CheckName, check: () => readonly Finding[] | Promise<readonly Finding[]>) {
	try {
		return await check();
	} catch (error) {
		const found = createFindings(name);
		found.failed(error);
		return found.list;
	}
}

/** Checks the database; starts an embedded one that is not running. Does not create one, because only `serve` does. */
async function onDatabase(context: CommandContext, config: Pick<Config, "databaseUrl" | "dataDir" | "workers">) {
	if (config.databaseUrl !== null || embeddedExists(config.dataDir))
		return context.withDatabaseUrl((url) => checkDatabase(config, url));
	const found = createFindings("database");
	await findPostgresBinaries();
	found.note(`the first start creates an embedded PostgreSQL in ${config.dataDir}`);
	return found.list;
}

function format(findings: readonly Finding[]): string {
	const width = Math.max(...findings.map(({ area }) => area.length));
	const lines = findings.flatMap(({ state, area, what, todo }) => {
		const head = `${state.padEnd("warning".length)}  ${area.padEnd(width)}  `;
		return [head + printable(what), ...(todo === undefined ? [] : [`${" ".repeat(head.length)}→ ${printable(todo)}`])];
	});
	const bad = findings.filter(({ state }) => state === "broken" || state === "warning");
	const broken = bad.filter(({ state }) => state === "broken").length;
	const end = bad.length === 0 ? "No problems." : `${broken} broken, ${bad.length - broken} warnings.`;
	const pages = [...new Set(bad.map(({ area }) => `  ${pageOf(area)}`))];
	return [...lines, "", end, ...(pages.length === 0 ? [] : ["Consequences:", ...pages])].join("\n");
}

const pageOf = (area: CheckName): string => `src/ops/runbook.md#doctor-${area}`;

async function askHealth(url: string): Promise<Response> {
	try {
		return await fetch(url, { signal: AbortSignal.timeout(HEALTH_DEADLINE_MS), redirect: "manual", proxy: "" });
	} catch (cause) {
		throw new Fault("service_unavailable", `The server at ${url} does not answer.`, { cause });
	}
}
