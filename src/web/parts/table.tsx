import { Button, Center, Skeleton, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { type NanoUsd, ZERO_USD } from "../../money/nano-usd.ts";
import { shownDecimals } from "../../money/shown-usd.ts";
import type { ApiError } from "../http.ts";
import type { List, Resource } from "../resource.ts";
import { t } from "../texts.tsx";
import { Problem } from "./problem.tsx";
import { Amount } from "./text.tsx";

export interface Column<T> {
	readonly label: string;
	readonly render?: (row: T) => ReactNode;
	/** A nano-dollar amount instead of `render`: right-aligned at the decimal point. */
	readonly amount?: (row: T) => NanoUsd | null;
	/** With a plus sign for credits. */
	readonly sign?: boolean;
	/** Right-aligned, for numbers and amounts. */
	readonly right?: boolean;
	/** Heading of the card in the narrow layout; one column per table. */
	readonly lead?: boolean;
	/** In the corner of the card, without its label; one column per table. */
	readonly corner?: boolean;
	/** Acts on a row; the label is for screen readers. */
	readonly act?: boolean;
	/** A name that is cut where figures need the room. */
	readonly clip?: boolean;
	/** A whole line of the card. */
	readonly long?: boolean;
}

export interface DataTableProps<T> {
	readonly label: string;
	readonly columns: readonly Column<T>[];
	/** Undefined while loading. */
	readonly rows: readonly T[] | undefined;
	readonly rowKey: (row: T) => string;
	/** Empty state. */
	readonly empty: ReactNode;
	readonly error?: ApiError | undefined;
	readonly retry?: (() => void) | undefined;
	/** Loads the next page. */
	readonly more?: {
		readonly next: string | null;
		readonly busy: boolean;
		load(): void;
		readonly error?: ApiError | undefined;
	};
	readonly skeletonRows?: number;
}

/** Roles are explicit, since the narrow layout uses block display, which removes table semantics. */
const ROLE = {
	table: { role: "table" },
	rowgroup: { role: "rowgroup" },
	row: { role: "row" },
	columnheader: { role: "columnheader" },
	cell: { role: "cell" },
} as const;

const CARDS_FROM_COLUMNS = 4;

/** A table; in the narrow layout each row of a wide one is a card. */
export function DataTable<T>(props: DataTableProps<T>) {
	const { columns, rows } = props;
	if (props.error && !rows) return <Problem error={props.error} retry={props.retry} />;
	if (rows?.length === 0) return <>{props.empty}</>;
	const decimals = columns.map(({ amount }) =>
		amount && rows ? Math.max(...rows.map((row) => shownDecimals(amount(row) ?? ZERO_USD))) : 0,
	);
	return (
		<>
			{props.error && <Problem error={props.error} retry={props.retry} />}
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
			<div className="table-room" tabIndex={0}>
				<table
					className={columns.length >= CARDS_FROM_COLUMNS ? "data cards" : "data"}
					{...ROLE.table}
					aria-label={props.label}
					aria-busy={rows === undefined}
				>
					<thead {...ROLE.rowgroup}>
						<tr {...ROLE.row}>
							{columns.map((column) => (
								<th
									key={column.label}
									{...ROLE.columnheader}
									scope="col"
									className={isRight(column) ? "right" : undefined}
								>
									{column.act ? <VisuallyHidden>{column.label}</VisuallyHidden> : column.label}
								</th>
							))}
						</tr>
					</thead>
					<tbody {...ROLE.rowgroup}>
						{rows === undefined
							? Array.from({ length: props.skeletonRows ?? 5 }, (_, index) => (
									// biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
									<SkeletonRow key={index} columns={columns.length} />
								))
							: rows.map((row) => <Row key={props.rowKey(row)} row={row} columns={columns} decimals={decimals} />)}
					</tbody>
				</table>
			</div>
			{props.more?.error && <Problem error={props.more.error} />}
			{props.more && props.more.next !== null && (
				<Center py="xs">
					<Button variant="default" size="xs" loading={props.more.busy} onClick={props.more.load}>
						{t("Show more")}
					</Button>
				</Center>
			)}
		</>
	);
}

function Row<T>(props: { row: T; columns: readonly Column<T>[]; decimals: readonly number[] }) {
	const { row, columns } = props;
	return (
		<tr {...ROLE.row}>
			{columns.map((column, index) => (
				<td key={column.label} {...ROLE.cell} data-label={column.label} className={cellClass(column)}>
					{column.amount && (
						<ColumnAmount
							nanoUsd={column.amount(row)}
							sign={column.sign ?? false}
							decimals={props.decimals[index] ?? 0}
						/>
					)}
					{column.render?.(row)}
				</td>
			))}
		</tr>
	);
}

function ColumnAmount(props: { nanoUsd: NanoUsd | null; sign: boolean; decimals: number }) {
	const { nanoUsd, ...rest } = props;
	return nanoUsd === null ? <span className="dim">–</span> : <Amount nanoUsd={nanoUsd} {...rest} />;
}

const isRight = <T,>(column: Column<T>): boolean => (column.right ?? false) || column.amount !== undefined;

function cellClass<T>(column: Column<T>): string | undefined {
	const names = [
		isRight(column) && "right",
		column.lead && "lead",
		column.corner && "corner",
		column.act && "act",
		column.clip && "clip-cell",
		column.long && "long",
	];
	return names.filter(Boolean).join(" ") || undefined;
}

function SkeletonRow({ columns }: { columns: number }) {
	return (
		<tr {...ROLE.row} className="skeleton-row">
			{Array.from({ length: columns }, (_, index) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: placeholders have no identity
				<td key={index} {...ROLE.cell}>
					<Skeleton height={12} width={index === 0 ? "70%" : "50%"} />
				</td>
			))}
		</tr>
	);
}

/** Table properties for a list. */
export const fromList = <T,>(list: List<T>) => ({
	rows: list.items,
	error: list.error,
	retry: () => void list.reload(),
	more: { next: list.next, busy: list.more.busy, error: list.more.error, load: () => void list.more.run() },
});

/** Table properties for the items of an answer. */
export const fromItems = <T,>({ data, error, reload }: Resource<{ readonly items: readonly T[] }>) => ({
	rows: data?.items,
	error,
	retry: () => void reload(),
});
