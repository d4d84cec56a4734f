export type RowView<Table extends { readonly $inferSelect: object }, Amount = number, Row = Table["$inferSelect"]> = {
	readonly [Name in keyof Row & string as Row[Name] extends Date | null
		? `${Name}Ms`
		: Name]: Row[Name] extends Date | null
		? number | Extract<Row[Name], null>
		: Name extends `${string}NanoUsd`
			? Amount
			: Row[Name];
};

/**
 * Converts a row: names to camel case, times to Unix milliseconds (`created_at` as `createdAtMs`), amounts
 * (`…_nano_usd`) to numbers. Amounts above 2^53 are rounded, so use `nanoUsd` before a calculation that moves money.
 */
export function toView<View>(row: object): View {
	const fields = Object.entries(row).map(([column, value]: [string, unknown]) => {
		const name = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
		// Times are recognized by the column's name, because Drizzle returns them as texts.
		if (/(^|_)at$/.test(column))
			return [`${name}Ms`, value === null ? null : new Date(value as Date | string).getTime()];
		if (value instanceof Date) return [name, value.getTime()];
		return [name, column.endsWith("_nano_usd") && value !== null ? Number(value) : value];
	});
	return Object.fromEntries(fields) as View;
}
