import { csvLine } from "../../base/csv.ts";
import { formatDecimal } from "../../money/decimal.ts";
import type { Statement } from "./statement.ts";
import { KINDS, type StatementLine } from "./statement-lines.ts";

const HEAD = [
	"day",
	"kind",
	"description",
	"requests",
	"prompt_tokens",
	"completion_tokens",
	"amount_usd",
	"balance_usd",
	"link",
	"project_id",
	"project",
];

/**
 * Independent of the reader's language, in English with a decimal point: programs know its column names, and two people
 * of a company get the same file. The first row is the opening balance, the last one the closing balance; the rows
 * between add up to it.
 */
export function statementCsv(statement: Statement, lines: readonly StatementLine[]): string {
	let balance = statement.openingNanoUsd;
	const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
	const rows = lines.map((line) => {
		balance += line.amountNanoUsd;
		return csvLine([
			line.day,
			line.kind,
			line.description === "" ? KINDS[line.kind] : line.description,
			count(line.requests),
			count(line.promptTokens),
			count(line.completionTokens),
			exactUsd(line.amountNanoUsd),
			exactUsd(balance),
			line.url,
			line.projectId,
			line.projectName,
		]);
	});
	const edge = (at: string, kind: string, amount: bigint) =>
		csvLine([at, kind, "", null, null, null, null, exactUsd(amount), null, null, null]);
	return [
		csvLine(HEAD),
		edge(day(statement.fromMs), "opening_balance", statement.openingNanoUsd),
		...rows,
		edge(day(statement.toMs - 1), "closing_balance", statement.closingNanoUsd),
	].join("");
}

/** All digits, at least cents. */
export const exactUsd = (nanoUsd: bigint): string => formatDecimal(nanoUsd, 9, 2);
const count = (value: bigint | null): string | null => (value === null ? null : String(value));
