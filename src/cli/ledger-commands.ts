import { reconcile } from "../ledger/reconcile.ts";
import { listSeals } from "../ledger/seal-list.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { Command } from "./command.ts";
import { PAGE_OPTIONS, pageOf } from "./option-values.ts";
import { isoOrNull, listOutput } from "./table.ts";

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

export const ledgerCommands: readonly Command[] = [reconcileCommand, sealsCommand];
