import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import type { Config } from "../config.ts";
import { archiveDays } from "../ledger/archive.ts";
import type { CheckedArchive } from "../ledger/archive-check.ts";
import { checkArchives, checkPath } from "../ledger/archive-check.ts";
import type { ArchivePlace } from "../ledger/archive-place.ts";
import { openArchive } from "../ledger/archive-place.ts";
import { reconcile } from "../ledger/reconcile.ts";
import { listSeals } from "../ledger/seal-list.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { Command } from "./command.ts";
import { PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { listOutput } from "./table.ts";

const reconcileCommand: Command = {
	name: "ledger reconcile",
	summary: "check the books; exit code 1 if an invariant is broken",
	arguments: [],
	options: {},
	async run({ withDatabase }) {
		const result = await withDatabase(({ statements }) => reconcile(statements));
		const lines = result.checks.map(({ name, ok, detail }) => `${ok ? "ok    " : "BROKEN"}  ${name}: ${detail}`);
		return { json: { ok: result.ok, checks: result.checks }, text: lines.join("\n"), exitCode: result.ok ? 0 : 1 };
	},
};

const sealsCommand: Command = {
	name: "ledger seals",
	summary: "the sealed days of the books",
	arguments: [],
	options: PAGE_OPTIONS,
	details:
		"Each seal rests on that of the day before. Who keeps a printed one elsewhere can tell later that nothing up to that day was changed.",
	async run({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listSeals(statements, pageOf(input)));
		return listOutput(
			page,
			["DAY", "REQUESTS", "CHARGED", "ENTRIES", "READ AGAIN", "SEAL"],
			(day) => ({
				day: day.id,
				requests: day.requests,
				charged_usd: formatUsd(day.charged),
				entries: day.entries,
				verified_at: isoOrNull(day.verifiedAtMs),
				problem: day.problem,
				seal: day.seal,
			}),
			(day) => [
				day.id,
				String(day.requests),
				formatUsd(day.charged),
				String(day.entries),
				day.problem ?? isoOrNull(day.verifiedAtMs) ?? "not yet",
				day.seal,
			],
		);
	},
};

/** Fault `invalid_request` if ARCHIVE is not set. */
function ownArchive({ retention }: Pick<Config, "retention">): ArchivePlace {
	if (retention.archive === null)
		throw new Fault("invalid_request", "Name a folder, or set ARCHIVE to the archive that is meant.");
	return openArchive(retention.archive);
}

const archiveCommand: Command = {
	name: "ledger archive",
	summary: "write sealed days that the archive has not yet as Parquet files",
	arguments: ["[FOLDER]"],
	options: {},
	details:
		"Two files a day, its settled requests and its ledger entries, amounts in nano-dollars, each with the day's seal in it and read back before it appears. Without a folder it is the archive that ARCHIVE names, to which a console writes by itself. Nothing is removed from the database.",
	async run({ withDatabase, config, progress }, input) {
		const folder = input.optionalArgument(0);
		const place = folder === undefined ? ownArchive(config()) : openArchive({ folder });
		const options = { own: folder === undefined, onDay: progress };
		const days = await withDatabase(({ statements }) => archiveDays(statements, place, options));
		progress("");
		return {
			json: { folder: place.name, days },
			text:
				days.length === 0 ? `${place.name} has every sealed day` : `wrote ${days.length} days, up to ${days.at(-1)}`,
		};
	},
};

const verifyCommand: Command = {
	name: "ledger verify",
	summary: "compare archived days with their seals; exit code 1 if one was changed",
	arguments: ["[PATH]"],
	options: {
		seal: { type: "string", value: "SEAL", help: "the newest day's seal, as it was kept elsewhere" },
	},
	details:
		"A file is compared with the seal in it, a folder or the archive that ARCHIVE names also with the chain of seals. Needs no database. Only a seal that was kept elsewhere (ledger seals) shows that the newest day was not made anew together with its seal.",
	async run({ config }, input) {
		const path = input.optionalArgument(0);
		const archives = await (path === undefined ? checkArchives(ownArchive(config())) : checkPath(path));
		const newest = archives.at(-1)?.seal ?? null;
		const expected = input.option("seal");
		const sealOk = expected === undefined || expected === newest;
		const ok = archives.length > 0 && sealOk && archives.every(({ problem }) => problem === null);
		const lines = archives.map(
			({ path, rows, problem }) => `${problem === null ? "ok    " : "BROKEN"}  ${path}: ${problem ?? `${rows} rows`}`,
		);
		if (archives.length === 0) lines.push("There are no archived days.");
		if (!sealOk) lines.push(`BROKEN  the newest seal is ${newest}`);
		return {
			json: { ok, newest_seal: newest, files: archives.map(fileJson) },
			text: lines.join("\n"),
			exitCode: ok ? 0 : 1,
		};
	},
};

function fileJson({ path, day, kind, rows, seal, problem }: CheckedArchive): Record<string, unknown> {
	return { path, day, kind, rows, seal, problem };
}

export const ledgerCommands: readonly Command[] = [reconcileCommand, sealsCommand, archiveCommand, verifyCommand];
