import { Elysia, t } from "elysia";
import { languageOf } from "../../base/language.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { ACCOUNT_QUERY, EMPTY_BODY, PAGE_QUERY, pageOf, pageOfRows } from "../page-query.ts";
import { cancelBatch } from "./batch-gateway.ts";
import type { BatchView } from "./batch-view.ts";
import { readBatches } from "./batch-view.ts";

const query = t.Object(ACCOUNT_QUERY);
const params = t.Object({ id: t.String({ pattern: "^[\\w-]{1,64}$" }) });

/** Batches of the visited account. `batch-gateway.ts` serves uploads and downloads. */
export function batchRoutes(parts: Parts<"statements" | "gateways" | "sessions">) {
	const { statements, sessions } = parts;

	async function find(request: Request, id: string): Promise<BatchView> {
		const { accountId } = sessions.account(request);
		const [batch] = await readBatches(statements, accountId, {
			...{ id, after: null, limit: 1 },
			language: languageOf(request.headers),
		});
		if (batch === undefined) throw new ConsoleError("not_found", "There is no such batch.");
		return batch;
	}

	return new Elysia({ name: "console-batches", prefix: "/batches" })
		.resolve(({ request }) => ({ member: sessions.account(request) }))
		.get(
			"/",
			async ({ member: { accountId }, request, query }): Promise<{ items: BatchView[]; next: string | null }> => {
				const { shown, asked, after } = pageOf(query);
				const wanted = { id: null, after, limit: asked, language: languageOf(request.headers) };
				return pageOfRows(await readBatches(statements, accountId, wanted), shown, ({ id }) => id);
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
