import { csvLine } from "../../base/csv.ts";
import type { TextId } from "../../base/translate.ts";
import { formatDecimal } from "../../money/decimal.ts";
import type { Statement, StatementEntry, StatementUsage } from "./statement.ts";

/** A line of a month's statement. A day has its movements of credit first, then usage by model and project. */
export interface StatementLine extends Pick<StatementUsage, "day" | "projectId" | "projectName"> {
	readonly kind: StatementEntry["kind"] | "usage" | "late_usage" | "recorded_later" | "more";
	readonly description: string;
	readonly requests: bigint | null;
	readonly promptTokens: bigint | null;
	readonly completionTokens: bigint | null;
	/** Positive amounts add credit. */
	readonly amountNanoUsd: bigint;
	readonly url: string;
}

export const LINE_KINDS = {
	top_up: "Top-up",
	refund: "Refund",
	adjustment: "Adjustment",
	promotion: "Promotional credit",
	dispute: "Dispute",
	credit_note: "Credit note",
	usage: "Usage",
	late_usage: "Usage of earlier months",
	recorded_later: "Charged in a later month",
	more: "Further movements",
} as const satisfies Readonly<Record<StatementLine["kind"], TextId>>;
const DAY_MS = 24 * 3_600_000;
const NONE = { projectId: "", projectName: "", requests: null, promptTokens: null, completionTokens: null };

/** Lines whose amounts sum to `closing − opening`. `place`: the console's origin and the account, for links. */
export function statementLines(statement: Statement, place: { readonly origin: string; readonly accountId: string }) {
	const page = (path: string, query: Record<string, string> = {}) =>
		`${place.origin}${path}?${new URLSearchParams({ ...query, account: place.accountId })}`;
	const lines: StatementLine[] = statement.entries.map(({ kind, atMs, note, amountNanoUsd, sourceRef }) => ({
		...{ ...NONE, kind, amountNanoUsd },
		day: new Date(atMs).toISOString().slice(0, 10),
		description: note,
		url: sourceRef.startsWith("topup:")
			? page(`/api/console/credit/receipts/${sourceRef.slice("topup:".length)}`)
			: page("/credit"),
	}));
	const isTold = statement.usage.some(({ projectId }) => projectId !== "");
	for (const { model, chargedNanoUsd, ...used } of statement.usage) {
		const from = Date.parse(`${used.day}T00:00:00Z`);
		const project = isTold ? { project: used.projectId || "none" } : {};
		lines.push({
			...{ ...used, kind: "usage", description: model, amountNanoUsd: -chargedNanoUsd },
			url: page("/requests", { from: String(from), to: String(from + DAY_MS), model, ...project }),
		});
	}
	lines.sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0));
	const rest = { ...NONE, day: "", description: "", url: page("/credit") };
	const untold = notTold(statement);
	if (untold !== 0n) lines.push({ ...rest, kind: "more", amountNanoUsd: untold });
	if (statement.lateNanoUsd !== 0n) lines.push({ ...rest, kind: "late_usage", amountNanoUsd: -statement.lateNanoUsd });
	if (statement.laterNanoUsd !== 0n)
		lines.push({ ...rest, kind: "recorded_later", amountNanoUsd: statement.laterNanoUsd });
	return lines;
}

function notTold({ entries, entrySums }: Statement): bigint {
	const all = Object.values(entrySums).reduce((sum, amount) => sum + amount, 0n);
	return entries.reduce((rest, { amountNanoUsd }) => rest - amountNanoUsd, all);
}

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
	description: ({ description, kind }) => description || LINE_KINDS[kind],
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
