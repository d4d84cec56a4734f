import { Fault } from "../base/fault.ts";
import { isoOrNull } from "../base/iso-date.ts";
import type { Config } from "../config.ts";
import { type Journal, journalCsv, journalLines, listJournals, readJournal } from "../console/statement/journal.ts";
import { exactUsd } from "../console/statement/statement-lines.ts";
import { archiveDays } from "../ledger/archive.ts";
import { checkArchives, checkPath } from "../ledger/archive-check.ts";
import { type ArchiveStorage, openArchive } from "../ledger/archive-place.ts";
import { reconcile } from "../ledger/reconciler.ts";
import { listSeals } from "../ledger/seals.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { CommandRuns } from "./command.ts";
import { parsePage } from "./setting-options.ts";
import { listOutput } from "./table.ts";

export const ledgerCommands: CommandRuns = {
	async "ledger reconcile"({ withDatabase }) {
		const result = await withDatabase(({ statements }) => reconcile(statements));
		const lines = result.checks.map(({ name, ok, detail }) => `${ok ? "ok    " : "BROKEN"}  ${name}: ${detail}`);
		return { json: { ok: result.ok, checks: result.checks }, text: lines.join("\n"), exitCode: result.ok ? 0 : 1 };
	},
	async "ledger seals"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listSeals(statements, parsePage(input)));
		return listOutput(page, sealJson, ["DAY", "REQUESTS", "CHARGED", "ENTRIES", "VERIFIED", "SEAL"], {
			VERIFIED: (day) => day.problem ?? isoOrNull(day.verifiedAtMs) ?? "not yet",
		});
	},
	async "ledger journal"({ withDatabase }, input) {
		const month = input.optionalArgument(0);
		if (month === undefined) {
			const items = await withDatabase(({ statements }) => listJournals(statements));
			return listOutput({ items, next: null }, journalJson, ["MONTH", "DEFERRED", "PROMOTIONAL", "CLOSED"]);
		}
		const journal = await withDatabase(({ statements }) => readJournal(statements, month));
		return {
			json: { ...journalJson(journal), lines: journalLines(journal) },
			text: journalCsv(journal).replaceAll("\r\n", "\n").trimEnd(),
		};
	},
	async "ledger archive"({ withDatabase, config, progress }, input) {
		const folder = input.optionalArgument(0);
		const place = folder === undefined ? ownArchive(config()) : openArchive({ folder });
		const options = { own: folder === undefined, onDay: progress };
		const days = await withDatabase(({ statements }) => archiveDays(statements, place, options));
		progress("");
		return {
			json: { folder: place.name, days },
			text: days.length === 0 ? `${place.name} has all sealed days` : `wrote ${days.length} days up to ${days.at(-1)}`,
		};
	},
	async "ledger verify"({ config }, input) {
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
			json: {
				ok,
				newest_seal: newest,
				files: archives.map(({ path, day, kind, rows, seal, problem }) => ({ path, day, kind, rows, seal, problem })),
			},
			text: lines.join("\n"),
			exitCode: ok ? 0 : 1,
		};
	},
};

const journalJson = (journal: Journal) => ({
	month: journal.month,
	deferred_usd: exactUsd(journal.deferredNanoUsd),
	promotional_usd: exactUsd(journal.promotionalNanoUsd),
	closed_at: isoOrNull(journal.closedAtMs),
});

const sealJson = (day: Awaited<ReturnType<typeof listSeals>>["items"][number]) => ({
	day: day.id,
	requests: day.requests,
	charged_usd: formatUsd(day.charged),
	entries: day.entries,
	verified_at: isoOrNull(day.verifiedAtMs),
	problem: day.problem,
	seal: day.seal,
});

/** Returns the configured archive. Fault `invalid_request` if ARCHIVE is unset. */
function ownArchive({ retention }: Pick<Config, "retention">): ArchiveStorage {
	if (retention.archive === null) throw new Fault("invalid_request", "Give a folder, or set ARCHIVE.");
	return openArchive(retention.archive);
}
