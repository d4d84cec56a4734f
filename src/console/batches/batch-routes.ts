import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import type { ConsoleParts } from "../console-deps.ts";
import { ACCOUNT_QUERY, EMPTY_BODY, PAGE_QUERY, pageOf, pageOfRows } from "../page-query.ts";
import { Refusal } from "../texts/refusal.ts";
import { toldIn } from "../texts/told-in.ts";
import { cancelBatch } from "./batch-gateway.ts";
import type { BatchView } from "./batch-view.ts";
import { readBatches } from "./batch-view.ts";

const query = t.Object(ACCOUNT_QUERY);
const params = t.Object({ id: t.String({ pattern: "^[\\w-]{1,64}$" }) });

/** Batches of the visited account. What is sent or fetched as a file is served by `batch-gateway.ts`. */
export function batchRoutes(parts: ConsoleParts) {
	const { statements, visits } = parts;

	async function find(request: Request, id: string): Promise<BatchView> {
		const { accountId } = visits.account(request);
		const [batch] = await readBatches(statements, accountId, { id, after: null, limit: 1 });
		if (batch === undefined) throw new Refusal("not_found", "There is no such batch.");
		return toldTo(request, batch);
	}

	return new Elysia({ name: "console-batches", prefix: "/batches" })
		.resolve(({ request }) => ({ member: visits.account(request) }))
		.get(
			"/",
			async ({ member: { accountId }, request, query }): Promise<{ items: BatchView[]; next: string | null }> => {
				const { shown, asked, after } = pageOf(query);
				const batches = await readBatches(statements, accountId, { id: null, after, limit: asked });
				return pageOfRows(
					batches.map((batch) => toldTo(request, batch)),
					shown,
					({ id }) => id,
				);
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.get("/:id", ({ request, params }) => find(request, params.id), { query, params })
		.post(
			"/:id/cancel",
			async ({ member: { connection }, request, params }) => {
				const { id } = await find(request, params.id);
				await cancelBatch(parts, connection, id);
				return find(request, id);
			},
			{ query, params, body: EMPTY_BODY },
		);
}

/** Why it waits and what is wrong with it, as its reader reads; they are kept in English, for programs. */
function toldTo({ headers }: Request, batch: BatchView): BatchView {
	const language = languageOf(headers);
	const told = (message: string) => toldIn(language, message) ?? message;
	return {
		...batch,
		paused: batch.paused === null ? null : told(batch.paused),
		problems: batch.problems.map((problem) => ({ ...problem, message: told(problem.message) })),
	};
}
