import fs from "node:fs";
import { join } from "node:path";
import { Fault } from "../base/fault.ts";
import { checkCatalog } from "../catalog/check.ts";
import { type CatalogFile, parseCatalogFile } from "../catalog/file.ts";
import type { Config } from "../config.ts";
import { runningEmbeddedUrl } from "../db/embedded.ts";
import { findPostgresBinaries } from "../db/postgres-binaries.ts";
import type { Command, CommandContext } from "./command.ts";
import { checkConfiguration } from "./doctor/check-configuration.ts";
import { checkDatabase } from "./doctor/check-database.ts";
import { checkDisk } from "./doctor/check-disk.ts";
import { checkLimits } from "./doctor/check-limits.ts";
import { checkMail } from "./doctor/check-mail.ts";
import { checkPayments } from "./doctor/check-payments.ts";
import { checkSecrets } from "./doctor/check-secrets.ts";
import { checkUpstreams } from "./doctor/check-upstreams.ts";
import { type Area, type Finding, findingsOf, pageOf, reasonOf } from "./doctor/finding.ts";
import { shown } from "./shown.ts";

const ORDER: readonly Area[] = [
	"configuration",
	"secrets",
	"database",
	"clock",
	"disk",
	"limits",
	"upstreams",
	"mail",
	"payments",
];

export const doctorCommand: Command = {
	name: "doctor",
	summary:
		"say what is wrong with everything that the service needs, and what to do; exit code 1 if something is broken",
	arguments: [],
	options: {},
	details:
		"Looks at configuration, secrets, database, clock, disk, limits, model servers, mail and payments, as `serve` would find them, and changes nothing. It shows no secret.",
	async run(context) {
		const findings = await examine(context);
		const ok = findings.every(({ state }) => state !== "broken");
		const paged = findings.map((finding) => ({ ...finding, page: pageOf(finding.area) }));
		return { json: { ok, findings: paged }, text: format(findings), exitCode: ok ? 0 : 1 };
	},
};

async function examine(context: CommandContext): Promise<readonly Finding[]> {
	const { config, findings } = checkConfiguration(() => context.config());
	if (config === undefined) return findings;
	const catalog = config.role === "console" ? theGateways("upstreams") : readCatalog(config);
	const models = catalog.file?.models ?? [];
	const checks: [Area, Check][] = [
		["secrets", () => checkSecrets(config, catalog.text)],
		["database", () => onDatabase(context, config)],
		["disk", () => checkDisk(config)],
		["limits", () => checkLimits(config, models)],
		[
			"upstreams",
			async () => [...catalog.findings, ...(catalog.file === undefined ? [] : await checkUpstreams(models))],
		],
		["mail", () => (config.role === "gateway" ? theConsoles("mail") : checkMail(config))],
		["payments", () => (config.role === "gateway" ? theConsoles("payments") : checkPayments(config))],
	];
	const found = await Promise.all(checks.map(([area, check]) => guarded(area, check)));
	return [...findings, ...found.flat()].toSorted((a, b) => ORDER.indexOf(a.area) - ORDER.indexOf(b.area));
}

type Check = () => readonly Finding[] | Promise<readonly Finding[]>;

/** What this machine's role has no part in is looked at where the other plane runs. */
function theConsoles(area: Area): readonly Finding[] {
	const found = findingsOf(area);
	found.note("a gateway has no part in it: ask `tollgate doctor` where the console runs");
	return found.list;
}

function theGateways(area: Area): ReadCatalog {
	const found = findingsOf(area);
	found.note("a console asks no model server: ask `tollgate doctor` where a gateway runs");
	return { findings: found.list };
}

/** A check that fails itself is a finding, too, and leaves the others alone. */
async function guarded(area: Area, check: Check): Promise<readonly Finding[]> {
	try {
		return await check();
	} catch (error) {
		const found = findingsOf(area);
		found.broken(`it could not be looked at: ${reasonOf(error)}`, "See the reason.");
		return found.list;
	}
}

interface ReadCatalog {
	readonly text?: string;
	readonly file?: CatalogFile;
	readonly findings: readonly Finding[];
}

function readCatalog({ configPath, demo, production, env }: Config): ReadCatalog {
	const found = findingsOf("upstreams");
	if (configPath === null) {
		if (demo) found.note("there is no catalogue: the demo connects the model servers that it finds on this machine");
		// In production the configuration itself warns of it.
		else if (!production)
			found.warn(
				"there is no catalogue: no model is served",
				"`tollgate init` writes one from the model servers of this machine.",
			);
		return { findings: found.list };
	}
	let text: string;
	try {
		text = fs.readFileSync(configPath, "utf8");
	} catch (error) {
		found.broken(`${configPath} cannot be read: ${reasonOf(error)}`, "Set CONFIG to a file that this user may read.");
		return { findings: found.list };
	}
	const check = checkCatalog(text, env);
	const line = (problem: { line: number; message: string }) =>
		`${configPath}${problem.line === 0 ? "" : `:${problem.line}`}: ${problem.message}`;
	if (!check.ok) {
		for (const problem of check.problems)
			found.broken(line(problem), "Correct it; `tollgate catalog check` looks at it again.");
		return { text, findings: found.list };
	}
	for (const warning of check.warnings) found.note(line(warning));
	return { text, file: parseCatalogFile(text, env), findings: found.list };
}

/** An embedded database is made by the first start alone; one that is there is started for as long as it is looked at. */
async function onDatabase(context: CommandContext, config: Config): Promise<readonly Finding[]> {
	const found = findingsOf("database");
	const { databaseUrl, dataDir } = config;
	const isMade = fs.existsSync(join(dataDir, "postgres", "cluster"));
	if (databaseUrl === null && !isMade) {
		await findPostgresBinaries().then(
			() => found.note(`an embedded PostgreSQL will be made at the first start, in ${join(dataDir, "postgres")}`),
			(error: unknown) => found.broken(error instanceof Fault ? error.message : reasonOf(error), "Set DATABASE_URL."),
		);
		return found.list;
	}
	if (databaseUrl !== null) return checkDatabase(config, databaseUrl);
	const running = runningEmbeddedUrl(dataDir);
	return running === undefined
		? context.withDatabaseUrl((url) => checkDatabase(config, url))
		: checkDatabase(config, running);
}

function format(findings: readonly Finding[]): string {
	const stateWidth = "warning".length;
	const areaWidth = Math.max(...findings.map(({ area }) => area.length));
	const lines = findings.flatMap(({ state, area, what, todo }) => {
		const head = `${state.padEnd(stateWidth)}  ${area.padEnd(areaWidth)}  `;
		return [head + shown(what), ...(todo === undefined ? [] : [`${" ".repeat(head.length)}→ ${shown(todo)}`])];
	});
	return [...lines, "", conclusion(findings), ...pagesOf(findings)].join("\n");
}

function conclusion(findings: readonly Finding[]): string {
	const count = (state: Finding["state"]) => findings.filter((finding) => finding.state === state).length;
	const [broken, warnings] = [count("broken"), count("warning")];
	if (broken + warnings === 0) return "All is well.";
	const things = (number: number) => (number === 1 ? "1 thing is" : `${number} things are`);
	if (broken === 0) return `Nothing is broken; ${things(warnings)} not as good as could be.`;
	return `${things(broken)} broken${warnings === 0 ? "" : `, ${things(warnings)} not as good as could be`}.`;
}

/** Of what is not well. */
function pagesOf(findings: readonly Finding[]): string[] {
	const areas = new Set(
		findings.filter(({ state }) => state === "broken" || state === "warning").map(({ area }) => area),
	);
	return areas.size === 0 ? [] : ["What it leads to:", ...[...areas].map((area) => `  ${pageOf(area)}`)];
}
