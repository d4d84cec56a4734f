import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";
import type { StatusClass } from "../usage/usage-query.ts";
import { readPlace } from "./log-place.ts";
import { findRefused, type RefusedRow, refusedPage } from "./refused-log.ts";
import { type RequestDetail, requestDetail } from "./request-detail.ts";
import { findRequest, type RequestFilter, type RequestRow, requestPage } from "./request-log.ts";

/** A request in the log: settled, or refused before admission. `statusClass` distinguishes them. */
export type LogRow = RequestRow | RefusedRow;
export type LogStatus = StatusClass | "refused";

export interface LogFilter extends Omit<RequestFilter, "status"> {
	readonly status: LogStatus | null;
}

export const ANY_REQUEST: LogFilter = {
	fromMs: null,
	toMs: null,
	model: null,
	keyId: null,
	projectId: null,
	status: null,
	batchId: null,
};

/**
 * Newest first, both kinds merged. A whole page of each kind is read by its own index, so neither scans past the
 * other's rows.
 */
export async function logPage(
	statements: Statements,
	accountId: string,
	{ status, ...filter }: LogFilter,
	page: { asked: number; after: string | null },
): Promise<LogRow[]> {
	const part = { asked: page.asked, after: page.after === null ? null : readPlace(page.after) };
	const [settled, refused] = await Promise.all([
		status === "refused" ? [] : requestPage(statements, accountId, { ...filter, status }, part),
		filter.batchId === null && (status === null || status === "refused")
			? refusedPage(statements, accountId, filter, part)
			: [],
	]);
	return [...settled, ...refused].sort((a: LogRow, b: LogRow) => (a.cursor < b.cursor ? 1 : -1)).slice(0, page.asked);
}

/** By `req_…`, the id of the response, or a bare UUID; the account's own only. Fault not_found. */
export async function logDetail(
	statements: Statements,
	accountId: string,
	id: string,
): Promise<RequestDetail | RefusedRow> {
	const settled = await findRequest(statements, accountId, id);
	if (settled !== undefined) return requestDetail(statements, settled);
	const refused = await findRefused(statements, accountId, id);
	if (refused !== undefined) return refused;
	throw new ConsoleError("not_found", "There is no such request, or it is still running.");
}
