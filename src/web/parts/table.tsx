import { Center, Skeleton, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { shownDecimals } from "../../money/shown-usd.ts";
import type { ApiError } from "../http.ts";
import type { Action, List, Resource } from "../resource.ts";
import { t } from "../texts.tsx";
import { ActButton } from "./form.tsx";
import { ErrorMessage, Panel } from "./page.tsx";
import { Amount } from "./text.tsx";

/** A column of a table. It has exactly one of `render`, `figure` and `amount`. */
export interface Column<T> {
	readonly label: string;
	/** Content of a cell. An empty cell shows a dash, except in a column of buttons. */
	readonly render?: (row: T) => ReactNode;
	/** A formatted number; right-aligned. */
	readonly figure?: (row: T) => ReactNode;
	/** An amount in nano-dollars; aligned at the decimal point. */
	readonly amount?: (row: T) => NanoUsd | null;
	/** True: positive amounts have a plus sign. */
	readonly sign?: boolean;
	readonly right?: boolean;
	/** True for the column that becomes the card's heading in the narrow layout; one per table. */
	readonly lead?: boolean;
	/** True for the column in the corner of the card, without its label; one per table. */
	readonly corner?: boolean;
	/** True for a column of buttons; right-aligned. Only screen readers read its label. */
	readonly act?: boolean;
	/** True: a long name is cut off if other columns need the space. */
	readonly clip?: boolean;
	readonly long?: boolean;
}

export interface DataTableProps<T> {
	readonly label: string;
	readonly columns: readonly Column<T>[];
	readonly rows: readonly T[] | undefined;
	/** React key of a row; the default is the row's id. */
	readonly rowKey?: (row: T) => string;
	/** Buttons or links of a row, shown in the last column. */
	readonly act?: (row: T) => ReactNode;
	readonly actLabel?: string;
	readonly empty?: ReactNode;
	readonly error?: ApiError | undefined;
	readonly retry?: (() => void) | undefined;
	/** Loads the next page; undefined on the last page. */
	readonly more?: Action<[], void> | undefined;
}

export type TableRows<T> = Pick<DataTableProps<T>, "rows" | "error" | "retry" | "more">;

type WithId = { readonly id: string };
type RowKey<T> = Required<Pick<DataTableProps<T>, "rowKey">>;
const keyOf = <T,>({ rowKey }: Pick<DataTableProps<T>, "rowKey">, row: T): string =>
	rowKey?.(row) ?? (row as WithId).id;

/** Sets the role explicitly: in the narrow layout `display: block` removes the table's role for screen readers. */
const role = (name: string) => ({ role: name });

const CARDS_FROM_COLUMNS = 4;
const SKELETON_ROWS = ["1", "2", "3"];

/** A table, whose rows become cards in the narrow layout. */
export function DataTable<T extends WithId>(props: DataTableProps<T>): ReactNode;
export function DataTable<T>(props: DataTableProps<T> & RowKey<T>): ReactNode;
export function DataTable<T>(props: DataTableProps<T>) {
	const { rows, more, act, actLabel = t("Action") } = props;
	const columns = act ? [...props.columns, { label: actLabel, act: true, render: act }] : props.columns;
	if (props.error && !rows) return <ErrorMessage error={props.error} retry={props.retry} />;
	if (rows?.length === 0) return <>{props.empty}</>;
	const decimals = columns.map(({ amount }) =>
		amount && rows ? Math.max(...rows.map((row) => shownDecimals(amount(row) ?? ZERO_USD))) : 0,
	);
	return (
		<>
			{props.error && <ErrorMessage error={props.error} retry={props.retry} />}
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
			<div className="table-room" tabIndex={0}>
				<table
					className={columns.length >= CARDS_FROM_COLUMNS ? "data cards" : "data"}
					{...role("table")}
					aria-label={props.label}
					aria-busy={rows === undefined}
				>
					<thead {...role("rowgroup")}>
						<tr {...role("row")}>
							{columns.map((column) => (
								<th key={column.label} {...role("columnheader")} scope="col" className={isRight(column) ? "right" : ""}>
									{column.act ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
								</th>
							))}
						</tr>
					</thead>
					<tbody {...role("rowgroup")}>
						{rows === undefined
							? SKELETON_ROWS.map((row) => (
									<tr key={row} {...role("row")} className="skeleton-row">
										{columns.map(({ label }) => (
											<td key={label} {...role("cell")}>
												<Skeleton height={12} width="60%" />
											</td>
										))}
									</tr>
								))
							: rows.map((row) => (
									<tr key={keyOf(props, row)} {...role("row")}>
										{columns.map((column, index) => (
											<td key={column.label} {...role("cell")} data-label={column.label} className={cellClass(column)}>
												{contentOf(column, row, decimals[index] ?? 0)}
											</td>
										))}
									</tr>
								))}
					</tbody>
				</table>
			</div>
			{more?.error && <ErrorMessage error={more.error} />}
			{more && (
				<Center py="xs">
					<ActButton label={t("Show more")} action={more} />
				</Center>
			)}
		</>
	);
}

type TablePanelProps<T> = Omit<DataTableProps<T>, "label"> & {
	readonly title: string;
	/** Name of the table for screen readers, if the title does not suffice. */
	readonly label?: string;
	readonly aside?: ReactNode;
	readonly children?: ReactNode;
};

/** A table in a panel, with `children` below the table. */
export function TablePanel<T extends WithId>(props: TablePanelProps<T>): ReactNode;
export function TablePanel<T>(props: TablePanelProps<T> & RowKey<T>): ReactNode;
export function TablePanel<T>(props: TablePanelProps<T>) {
	const { title, aside, children, ...table } = props;
	return (
		<Panel title={title} aside={aside} flush>
			<DataTable label={title} {...table} rowKey={(row) => keyOf(props, row)} />
			{children}
		</Panel>
	);
}

const DASH = <span className="dim">–</span>;

function contentOf<T>(column: Column<T>, row: T, decimals: number): ReactNode {
	if (column.amount) {
		const nanoUsd = column.amount(row);
		return nanoUsd === null ? DASH : <Amount nanoUsd={nanoUsd} sign={column.sign ?? false} decimals={decimals} />;
	}
	if (column.figure) return <span className="num">{column.figure(row) || "–"}</span>;
	return column.render?.(row) || (column.act ? null : DASH);
}

const isRight = <T,>({ right, act, amount, figure }: Column<T>): boolean =>
	(right ?? act ?? false) || amount !== undefined || figure !== undefined;

function cellClass<T>(column: Column<T>): string {
	const { lead, corner, act, clip, long } = column;
	const names = { right: isRight(column), lead, corner, act, "clip-cell": clip, long };
	return Object.entries(names)
		.flatMap(([name, isSet]) => (isSet ? [name] : []))
		.join(" ");
}

export const fromList = <T,>({ items, error, reload, next, more }: List<T>) => ({
	rows: items,
	error,
	retry: () => void reload(),
	more: next === null ? undefined : more,
});

export const fromItems = <T,>({ data, error, reload }: Resource<{ readonly items: readonly T[] }>) => ({
	rows: data?.items,
	error,
	retry: () => void reload(),
});
