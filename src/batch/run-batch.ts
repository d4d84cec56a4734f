import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { Log } from "../base/log.ts";
import type { CatalogSnapshot } from "../catalog/model.ts";
import { BytesLost } from "../files/blob-store.ts";
import type { FileWriter } from "../files/file-transfer.ts";
import type { Files } from "../files/files.ts";
import type { KeyDigest } from "../keys/secret.ts";
import { type BatchBooks, type ClaimedLine, RunLost } from "./batch-books.ts";
import { InputUnreadable, remainingLines } from "./batch-line.ts";
import type { BatchEnding, BatchProblem, BatchRecord } from "./batch-record.ts";
import { CANCELLED_LINE_ERROR, EXPIRED_LINE_ERROR, unansweredLine } from "./line-text.ts";
import { createLineWork, type LineSender, type LineStopReason } from "./line-work.ts";
import { createOutcomeWriter, type OutcomeWriter } from "./outcomes.ts";
import { startBatchTick } from "./pulse.ts";
import { validateInput } from "./validate.ts";

/** Number of a file's stored parts, and the numbers of those that are empty. */
interface StoredParts {
	readonly parts: number;
	readonly empty: ReadonlySet<number>;
}

/** Returns the lines whose outcome an earlier run has stored; frees all other claimed lines. Rejects with RunLost. */
async function linesBefore(
	{ books, outcomes }: { books: Pick<BatchBooks, "lines" | "reopen">; outcomes: Pick<OutcomeWriter, "restore"> },
	{ batchId, run }: { readonly batchId: string; readonly run: number },
	stored: { readonly output: StoredParts; readonly error: StoredParts },
): Promise<ReadonlySet<number>> {
	const done = new Set<number>();
	let after = 0;
	for (;;) {
		const rows = await books.lines(batchId, after);
		const lost: ClaimedLine[] = [];
		for (const row of rows) {
			after = row.line;
			if (row.state === "free") continue;
			if (row.state !== "claimed" && row.part !== null && isStored(row.part, stored[row.state])) {
				done.add(row.line);
				outcomes.restore(row);
			} else lost.push({ line: row.line, id: row.id });
		}
		if (lost.length > 0 && !(await books.reopen(batchId, run, lost))) throw new RunLost();
		if (rows.length === 0) return done;
	}
}

function isStored(part: number, { parts, empty }: StoredParts): boolean {
	return part < parts && !empty.has(part);
}

export interface RunDeps {
	readonly books: BatchBooks;
	readonly files: Files;
	readonly carrier: LineSender;
	readonly clock: Clock;
	readonly log: Log;
	/** The catalogue as the account sees it. */
	snapshot(accountId: string): Promise<CatalogSnapshot>;
	readonly refused: Set<string>;
	/** Time in which lines in flight may finish when the process stops. */
	readonly graceMs: number;
	/** True if other batches wait to run on this instance. */
	othersWait(): Promise<boolean>;
}

/** Number of lines that were never sent whose outcomes are stored in one step. */
const REST_LINES = 1_000;
/** Time in which outcomes must be sealed when the process stops. */
const SHUTDOWN_FLUSH_MS = 5_000;

/** `isPast`: the batch's time limit had passed by Postgres's clock when this run took the batch. */
type Taken = BatchRecord & { readonly keyDigest: KeyDigest; readonly isPast: boolean };

/**
 * Runs a batch from where an earlier run stopped to its end, or until `signal` aborts, a newer run takes over, or the
 * batch yields to another. Rejects if the batch should be tried again later.
 */
export async function runBatch(deps: RunDeps, batchId: string, signal: AbortSignal): Promise<void> {
	const taken = await deps.books.take(batchId);
	if (taken === undefined) return;
	const { keyDigest, isPast } = taken;
	assert(keyDigest !== null, "keys are never deleted");
	deps.log.info("a batch is taken", { batch: batchId, run: taken.batch.run, state: taken.batch.state });
	try {
		await runTaken(deps, { ...taken.batch, keyDigest, isPast }, signal);
	} catch (error) {
		if (!(error instanceof RunLost)) throw error;
		deps.log.info("a batch has a newer run", { batch: batchId, run: taken.batch.run });
	}
}

async function runTaken(deps: RunDeps, taken: Taken, signal: AbortSignal): Promise<void> {
	const { keyDigest, isPast } = taken;
	let batch: BatchRecord | undefined = taken;
	try {
		batch = await prepared(deps, taken, signal);
		if (batch !== undefined) await carriedOut(deps, { ...batch, keyDigest, isPast }, signal);
	} catch (error) {
		const isLate = isPast && deps.clock.wallMs() > taken.expiresAtMs + AWAY_MS_MAX;
		if (batch === undefined || error instanceof RunLost || signal.aborted) throw error;
		if (isLost(error, isLate)) {
			deps.log.error("the input of a batch is lost; the batch ends", { batch: batch.id, error });
			await fail(deps, batch, [INPUT_LOST]);
		} else if (batch.model === null && isLate) await finish(deps, batch, "expired");
		else throw error;
	}
}

/** True if another run would fail too: bytes are lost, or were unavailable for longer than the batch may last. */
function isLost(error: unknown, isLate: boolean): boolean {
	const isUnread = error instanceof InputUnreadable;
	return (isUnread ? error.cause : error) instanceof BytesLost || (isUnread && isLate);
}

/** Checks the input and creates the output files. Undefined if that ended the batch. */
async function prepared(deps: RunDeps, batch: Taken, signal: AbortSignal): Promise<BatchRecord | undefined> {
	const { books } = deps;
	if (batch.model !== null) return batch;
	if (batch.state === "cancelling") {
		await finish(deps, batch, "cancelled");
		return undefined;
	}
	const input = await deps.files.find(batch.accountId, batch.inputFileId);
	const result =
		input === undefined
			? ({ ok: false, problems: [INPUT_GONE] } as const)
			: await validateInput(deps.files.read(input), batch.endpoint, await deps.snapshot(batch.accountId), signal);
	if (!result.ok) {
		await fail(deps, batch, result.problems);
		return undefined;
	}
	const ids = { output: batch.outputFileId ?? newId("file"), error: batch.errorFileId ?? newId("file") };
	// The ids are stored before the files are created, so that a crash leaves no file without a batch.
	if (!(await books.writes(batch.id, batch.run, ids))) throw new RunLost();
	const owner = { accountId: batch.accountId, keyId: batch.keyId };
	for (const [what, id] of Object.entries(ids))
		await deps.files.writer(owner, { id, purpose: "batch_output", filename: `${batch.id}_${what}.jsonl` });
	const begun = await books.begin(batch.id, batch.run, { model: result.model, total: result.total });
	if (begun === undefined) throw new RunLost();
	return begun;
}

/** How long after the batch's time limit to wait for an unavailable store, to list the lines that were not sent. */
const AWAY_MS_MAX = 3600_000;
const INPUT_LOST: BatchProblem = {
	code: "input_file_lost",
	message: "The contents of the input file are lost: remaining lines were not sent. Upload the file again.",
	param: "input_file_id",
	line: null,
};
const INPUT_GONE: BatchProblem = {
	code: "input_file_not_found",
	message: "The input file was deleted or has expired.",
	param: "input_file_id",
	line: null,
};

async function carriedOut(deps: RunDeps, batch: Taken, signal: AbortSignal): Promise<void> {
	if (batch.finalizingAtMs !== null && batch.ending !== null) return finish(deps, batch, batch.ending);
	const { outputFileId, errorFileId, model } = batch;
	assert(outputFileId !== null && errorFileId !== null && model !== null, "a batch that was begun has its files");
	const [output, error] = await Promise.all([deps.files.resume(outputFileId), deps.files.resume(errorFileId)]);
	const input = await deps.files.find(batch.accountId, batch.inputFileId);
	if (output === undefined || error === undefined) return outputLost(deps, batch, { output, error });
	let stop: LineStopReason | undefined;
	try {
		// Also for a deleted input: answered lines are stored and counted before the batch fails.
		const bytes = input === undefined ? noBytes() : deps.files.read(input);
		stop = await everyLine(deps, { ...batch, model }, { bytes, output, error }, signal);
	} catch (failure) {
		if (input === undefined && failure instanceof InputUnreadable) return await fail(deps, batch, [INPUT_GONE]);
		if (!(failure instanceof Fault) || failure.code !== "conflict") throw failure;
		return await outputLost(deps, batch, { output, error }, failure.message);
	}
	if (stop === "aside")
		return deps.log.info("a batch that can send no line gives its place to others", { batch: batch.id });
	const ending = stop === undefined ? "completed" : stop === "expired" ? "expired" : "cancelled";
	const problems = stop === "key" ? [KEY_GONE] : null;
	if (!(await deps.books.finalize(batch.id, batch.run, ending, problems))) throw new RunLost();
	await finish(deps, batch, ending);
}

/** Fails a batch whose output is lost. Requests whose outcome is in no file will be refunded. */
async function outputLost(
	deps: RunDeps,
	batch: BatchRecord,
	files: { output: FileWriter | undefined; error: FileWriter | undefined },
	message = OUTPUT_GONE.message,
): Promise<void> {
	// Stops if a newer run has taken over, because fencing its files would stop its writing.
	if (!(await deps.books.reopen(batch.id, batch.run, []))) throw new RunLost();
	// If another run fenced these files, or a failover lost parts of them, this run stops and the next run decides.
	for (const file of [files.output, files.error])
		if (file && ((await deps.files.resume(file.fileId))?.parts() ?? 0) !== file.parts()) throw new Error(FENCED);
	const stored = { output: await storedPartsOf(files.output), error: await storedPartsOf(files.error) };
	const uncounted = { books: deps.books, outcomes: { restore: () => {} } };
	await linesBefore(uncounted, { batchId: batch.id, run: batch.run }, stored);
	await fail(deps, batch, [{ ...OUTPUT_GONE, message }]);
}

/** The stored parts of a file. A deleted file counts as containing all outcomes that its rows name. */
async function storedPartsOf(file: FileWriter | undefined): Promise<StoredParts> {
	try {
		if (file !== undefined) return { empty: await file.fence(), parts: file.parts() };
	} catch (error) {
		if (!(error instanceof Fault) || error.code !== "conflict") throw error;
	}
	return { empty: new Set(), parts: Number.POSITIVE_INFINITY };
}

function noBytes(): ReadableStream<Uint8Array> {
	return new ReadableStream({
		pull() {
			throw new BytesLost("the input was deleted, or has ended");
		},
	});
}

const OUTPUT_GONE: BatchProblem = {
	code: "output_file_lost",
	message: "The output files were deleted.",
	param: null,
	line: null,
};
const KEY_GONE: BatchProblem = {
	code: "api_key_revoked",
	message: "The API key of the batch was revoked or has expired: remaining lines were cancelled.",
	param: null,
	line: null,
};

/**
 * Resolves once every line has its outcome, otherwise with the reason. Rejects like `runBatch` and `OutcomeWriter.flush`.
 */
async function everyLine(
	deps: RunDeps,
	batch: Taken & { readonly model: string },
	{ bytes, output, error }: { bytes: ReadableStream<Uint8Array>; output: FileWriter; error: FileWriter },
	signal: AbortSignal,
): Promise<LineStopReason | undefined> {
	const run = { batchId: batch.id, run: batch.run };
	const outcomes = createOutcomeWriter(deps, { ...run, output, error });
	let lines: ReturnType<typeof remainingLines> | undefined;
	let pulse: ReturnType<typeof startBatchTick> | undefined;
	try {
		const stored = {
			output: { empty: await output.fence(), parts: output.parts() },
			error: { empty: await error.fence(), parts: error.parts() },
		};
		lines = remainingLines(bytes, await linesBefore({ ...deps, outcomes }, run, stored));
		const work = createLineWork({ ...deps, outcomes }, batch, lines);
		pulse = startBatchTick(deps, batch, { work, outcomes, signal }, deps);
		const stop = await work.run();
		if (stop === "lost") throw new RunLost();
		let unread: unknown;
		if (stop === "shutdown" || stop === "unreadable" || stop === "aside") {
			work.giveBack();
			await outcomes.flush(AbortSignal.timeout(SHUTDOWN_FLUSH_MS));
			if (stop === "shutdown") throw new Error(STOPS);
			unread = work.unreadable();
		} else if (stop !== undefined) unread = await endRest(work, outcomes, stop, signal);
		await outcomes.flush(signal);
		await pulse.last();
		// Thrown only after the progress was stored, because no other run may follow.
		if (unread !== undefined) throw unread;
		return stop;
	} finally {
		pulse?.stop();
		outcomes.stop();
		await lines?.return().catch(() => {});
	}
}

const FENCED = "the files have other parts than this run wrote; another run goes on with the batch";
const STOPS = "the instance stops; another run goes on with the batch";

/** Writes the remaining lines to the error file, with the reason. Returns the error if the input was not readable. */
async function endRest(
	work: ReturnType<typeof createLineWork>,
	outcomes: OutcomeWriter,
	stop: LineStopReason,
	signal: AbortSignal,
): Promise<InputUnreadable | undefined> {
	const reason = stop === "expired" ? EXPIRED_LINE_ERROR : CANCELLED_LINE_ERROR;
	try {
		for await (const { line, id, customId } of work.rest()) {
			const text = unansweredLine(customId, reason, id);
			outcomes.add({ line, id, file: "error", text, usage: undefined });
			if (outcomes.pending() >= REST_LINES) await outcomes.flush(signal);
		}
	} catch (error) {
		if (error instanceof InputUnreadable) return error;
		throw error;
	}
	return undefined;
}

/** Publishes the files and deletes empty ones. Can be repeated after a crash. */
async function finish(deps: RunDeps, batch: BatchRecord, ending: BatchEnding): Promise<void> {
	const output = await finishedFile(deps, batch, batch.outputFileId);
	const error = await finishedFile(deps, batch, batch.errorFileId);
	if (!(await deps.books.end(batch.id, batch.run, { ending, output, error }))) throw new RunLost();
	deps.log.info("a batch is over", { batch: batch.id, ending });
}

async function finishedFile({ files }: RunDeps, batch: BatchRecord, id: string | null): Promise<string | null> {
	if (id === null) return null;
	const writer = await files.resume(id);
	if (writer === undefined) return (await files.find(batch.accountId, id))?.id ?? null;
	if (writer.bytes() === 0) {
		await files.remove(batch.accountId, id);
		return null;
	}
	return (await writer.finish()).id;
}

/** Fails the batch but keeps its outcomes. Updates Postgres first, so that no other run writes the files. */
async function fail(deps: RunDeps, batch: BatchRecord, problems: readonly BatchProblem[]): Promise<void> {
	if (!(await deps.books.finalize(batch.id, batch.run, "failed", problems))) throw new RunLost();
	await finish(deps, batch, "failed");
}
