import { csvLine } from "../../base/csv.ts";
import { formatDecimal } from "../../money/decimal.ts";
import type { Statement } from "./statement.ts";
import { KINDS, type StatementLine } from "./statement-lines.ts";

export function csvFile(text: string, name: string): Response {
	const headers = {
		"content-type": "text/csv; charset=utf-8",
		"content-disposition": `attachment; filename="${name}"`,
	};
	return new Response(text, { headers });
}

export const exactUsd = (nanoUsd: bigint): string => formatDecimal(nanoUsd, 9, 2);

const COLUMNS: Readonly<Record<string, (line: StatementLine, balance: bigint) => string | null>> = {
	day: ({ day }) => day,
	kind: ({ kind }) => kind,
	description: ({ description, kind }) => description || KINDS[kind],
	requests: ({ requests }) => requests?.toString() ?? null,
	prompt_tokens: ({ promptTokens }) => promptTokens?.toString() ?? null,
	completion_tokens: ({ completionTokens }) => completionTokens?.toString() ?? null,
	amount_usd: ({ amountNanoUsd }) => exactUsd(amountNanoUsd),
	balance_usd: (_, balance) => exactUsd(balance),
	link: ({ url }) => url,
	project_id: ({ projectId }) => projectId,
	project: ({ projectName }) => projectName,
};

/**
 * CSV in English with a decimal point, because programs read it. The first row is the opening balance, the last the
 * closing balance; the rows between them add up to the difference.
 */
export function statementCsv(statement: Statement, lines: readonly StatementLine[]): string {
	let balance = statement.openingNanoUsd;
	const rows = lines.map((line) => {
		balance += line.amountNanoUsd;
		return Object.values(COLUMNS).map((cell) => cell(line, balance));
	});
	const edge = (atMs: number, kind: string, amount: bigint) => {
		const day = new Date(atMs).toISOString().slice(0, 10);
		return [day, kind, "", null, null, null, null, exactUsd(amount), null, null, null];
	};
	return [
		Object.keys(COLUMNS),
		edge(statement.fromMs, "opening_balance", statement.openingNanoUsd),
		...rows,
		edge(statement.toMs - 1, "closing_balance", statement.closingNanoUsd),
	]
		.map(csvLine)
		.join("");
}
