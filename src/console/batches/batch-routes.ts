import { t } from "elysia";
import { pauses } from "../../base/de.json";
import { ENGLISH, type Language, requestLanguage } from "../../base/language.ts";
import { translate } from "../../base/translate.ts";
import type { BatchPause, BatchProblem, BatchRecord } from "../../batch/batch-record.ts";
import { idOf, pageFrom } from "../../db/page.ts";
import type { Statements } from "../../db/statements.ts";
import { accountRoutes } from "../account-routes.ts";
import type { Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { PAGE_QUERY } from "../page-query.ts";
import { cancelBatch } from "./batch-gateway.ts";

export function batchRoutes(parts: Parts<"statements" | "gateways" | "sessions">) {
	const { statements, sessions } = parts;

	async function find(request: Request, id: string): Promise<BatchView> {
		const { accountId } = sessions.account(request);
		const language = requestLanguage(request.headers);
		const [batch] = await readBatches(statements, accountId, { id, after: null, asked: 1, language });
		if (batch === undefined) throw new ConsoleError("not_found", "There is no such batch.");
		return batch;
	}

	return accountRoutes(parts, "console-batches", "/batches")
		.get(
			"/",
			({ member: { accountId }, request, query }) => {
				const wanted = { id: null, language: requestLanguage(request.headers) };
				return pageFrom(query, (page) => readBatches(statements, accountId, { ...wanted, ...page }), idOf);
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.guard({ schema: "standalone", params: t.Object({ id: t.String({ pattern: "^[\\w-]{1,64}$" }) }) })
		.get("/:id", ({ request, params }) => find(request, params.id))
		.post("/:id/cancel", async ({ member: { connection }, request, params }) => {
			const { id } = await find(request, params.id);
			await cancelBatch(parts, connection, id);
			return find(request, id);
		});
}

/** A batch as its page shows it. Ids of result files are set from the batch's end until the files are deleted. */
export interface BatchView extends Omit<BatchRecord, "errors" | "paused"> {
	readonly keyName: string | null;
	readonly filename: string | null;
	readonly endedAtMs: number | null;
	readonly paused: string | null;
	readonly problems: readonly BatchProblem[];
}

interface Row {
	batch: BatchRecord;
	key: string | null;
	filename: string | null;
	output: string | null;
	error: string | null;
}

const PROBLEMS_SHOWN_MAX = 20;

/** Returns batches older than the batch `after`, newest first; or only the batch with the requested id. */
async function readBatches(
	statements: Statements,
	accountId: string,
	wanted: { id: string | null; after: string | null; asked: number; language: Language },
): Promise<BatchView[]> {
	const rows = await statements<Row>`
		select batch_fields(b) as batch, k.name as key, i.filename, o.id as output, e.id as error from batch b
		left join api_key k on k.id = b.key_id
		left join stored_file i on i.id = b.input_file_id and i.state = 'ready'
		left join stored_file o on o.id = b.output_file_id and o.state = 'ready'
		left join stored_file e on e.id = b.error_file_id and e.state = 'ready'
		where b.account_id = ${accountId} and (${wanted.id}::text is null or b.id = ${wanted.id})
			and (${wanted.after}::text is null or b.id < ${wanted.after})
		order by b.id desc limit ${wanted.asked}`;
	return rows.map((row) => viewOf(row, wanted.language));
}

function viewOf({ batch: { errors, paused, ...batch }, key, filename, output, error }: Row, language: Language) {
	return {
		...batch,
		keyName: key,
		filename,
		endedAtMs: batch.completedAtMs ?? batch.failedAtMs ?? batch.expiredAtMs ?? batch.cancelledAtMs,
		paused: paused === null ? null : pausedIn(language, paused),
		problems: (errors ?? [])
			.slice(0, PROBLEMS_SHOWN_MAX)
			.map((problem) => ({
				...{ code: problem.code, param: problem.param, line: problem.line },
				message: translate(language, problem.text ?? { id: problem.message }),
			})),
		outputFileId: output,
		errorFileId: error,
	};
}

function pausedIn(language: Language, { code, message }: BatchPause): string {
	const german: Readonly<Record<string, string>> = pauses;
	return language === ENGLISH || !Object.hasOwn(german, code) ? message : (german[code] ?? message);
}
