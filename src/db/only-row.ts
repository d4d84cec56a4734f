import { AnswerLost } from "./outage.ts";

/**
 * The row of a statement that always returns one. Without it the outcome is unknown, and no default may stand for it:
 * error `AnswerLost`.
 */
export function onlyRow<Row>(rows: readonly Row[]): Row {
	const [row] = rows;
	if (rows.length !== 1 || row === undefined)
		throw new AnswerLost(`the database gave ${rows.length} rows where a statement gives one`);
	return row;
}
