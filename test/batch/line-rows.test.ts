import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { BatchBooks, LineOutcome } from "../../src/batch/batch-books.ts";
import { createLineRows, NOTHING } from "../../src/batch/line-rows.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const ROW: LineOutcome = { line: 1, id: "id", state: "output", part: 0, ...NOTHING };
/** Refused together, then by itself, with what it used and without. */
const STATEMENTS = 5;

test.each([1, 2, 3, 4, 5])(
	"a run that ends while its statement %i is under way leaves no mark that its outcomes are refused",
	async (last) => {
		const refused = new Set<string>();
		const answers: ((error: Error) => void)[] = [];
		const books = { outcomes: () => new Promise<boolean>((_, reject) => answers.push(reject)) } as Partial<BatchBooks>;
		const clock = createManualClock();
		const rows = createLineRows(
			{ books: books as BatchBooks, clock, log: silentLog, refused },
			{ batchId: "batch_1", run: 1 },
		);
		let said: string | undefined;
		rows.keep([ROW], new AbortController().signal).catch((error: Error) => {
			said = error.message;
		});
		for (let statement = 1; statement <= STATEMENTS; statement++) {
			await waitFor(() => {
				clock.advance(1_000);
				return answers.length === statement;
			}, `statement ${statement}`);
			if (statement === last) rows.stop();
			answers.at(-1)?.(new Error("scripted: refused"));
		}
		await waitFor(() => said !== undefined || refused.size > 0, "its end");
		expect(said).toBe("the run of the batch is over");
		expect([refused.size, rows.pause(), answers.length]).toEqual([0, null, STATEMENTS]);
	},
);
