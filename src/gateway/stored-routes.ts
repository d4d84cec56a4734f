import type { Elysia } from "elysia";
import type { Batches } from "../batch/batches.ts";
import { createBatchAnswers } from "./batches/batch-answers.ts";
import type { Connection } from "./connection.ts";
import { createFileAnswers, type FileAnswer, type FileAnswersDeps } from "./files/file-answers.ts";
import type { Unmetered } from "./unmetered-answer.ts";

export interface StoredDeps extends FileAnswersDeps {
	readonly batches: Batches;
	connectionOf(request: Request): Connection;
}

const bare = { parse: "none" } as const;

/** Routes of files and batches. */
export function addStoredRoutes(
	app: Elysia,
	deps: StoredDeps,
	{ unmetered, wrongMethod }: { unmetered: Unmetered; wrongMethod(allowed: string): Response },
): void {
	const fileAnswers = createFileAnswers(deps);
	const [anyFile, oneFile, content] = ["/v1/files", "/v1/files/:id", "/v1/files/:id/content"] as const;
	const fileRoute = (answer: FileAnswer) => {
		const answered = unmetered((request, key, caller) =>
			answer({ connection: deps.connectionOf(request), key, ...caller }),
		);
		return ({ request }: { request: Request }) => answered(request);
	};
	app
		.post(anyFile, fileRoute(fileAnswers.upload), bare)
		.get(anyFile, fileRoute(fileAnswers.list))
		.get(oneFile, fileRoute(fileAnswers.retrieve))
		.delete(oneFile, fileRoute(fileAnswers.remove), bare)
		.get(content, fileRoute(fileAnswers.content))
		.all(anyFile, () => wrongMethod("GET, POST"), bare)
		.all(oneFile, () => wrongMethod("GET, DELETE"), bare)
		.all(content, () => wrongMethod("GET"), bare);

	const batchAnswers = createBatchAnswers(deps);
	const [anyBatch, oneBatch, cancel] = ["/v1/batches", "/v1/batches/:id", "/v1/batches/:id/cancel"] as const;
	const [create, list] = [
		unmetered((request, key, { checkAgain }) => batchAnswers.create(deps.connectionOf(request), key, checkAgain)),
		unmetered(batchAnswers.list),
	];
	const [retrieve, cancelled] = [unmetered(batchAnswers.retrieve), unmetered(batchAnswers.cancel)];
	app
		.post(anyBatch, ({ request }) => create(request), bare)
		.get(anyBatch, ({ request }) => list(request))
		.get(oneBatch, ({ request }) => retrieve(request))
		.post(cancel, ({ request }) => cancelled(request), bare)
		.all(anyBatch, () => wrongMethod("GET, POST"), bare)
		.all(oneBatch, () => wrongMethod("GET"), bare)
		.all(cancel, () => wrongMethod("POST"), bare);
}
