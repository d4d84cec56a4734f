import { AnswerLost } from "./outage.ts";

/** The row of a statement that always gives one. Without it nobody knows what was done, and no default says so: error `AnswerLost`. */
export function onlyRow<Row>(rows: readonly Row[]): Row {
	const [row] = rows;
	if (rows.length !== 1 || row === undefined)
		throw new AnswerLost(`the database gave ${rows.length} rows where a statement gives one`);
	return row;
}
