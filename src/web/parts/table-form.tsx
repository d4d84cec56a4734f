import type { ReactNode, RefObject } from "react";
import { useLayoutEffect, useRef } from "react";

/** From the roomiest on: as on a whole screen; with names, figures and headings that give way; each row a card. */
type TableForm = "whole" | "tight" | "cards";

/** Up to here there is no room for most tables, beside the navigation or with as many columns as models have. */
const ALWAYS_CARDS_PX = 1100;
/** Up to here names give way before anything else has to. */
const NAMES_GIVE_WAY_PX = 1300;

/**
 * Gives the table in it the roomiest form that fits. What fits is measured: it depends on the language, the names, the amounts and the reader's
 * size of text as much as on the window. The form is set on the element itself, before anything is drawn, so that no row is rendered anew.
 */
export function TableRoom({ rows, children }: { rows: unknown; children: ReactNode }) {
	const room = useRef<HTMLDivElement>(null);
	const ruler = useRef<HTMLDivElement>(null);
	/** The sizes by which the form was decided. */
	const decidedBy = useRef("");

	// biome-ignore lint/correctness/useExhaustiveDependencies: other rows need other room
	useLayoutEffect(() => {
		decidedBy.current = decide(room);
	}, [rows]);

	useLayoutEffect(() => {
		const onSize = () => {
			if (decidedBy.current !== sizesOf(room)) decidedBy.current = decide(room);
		};
		// A column of text may be as wide in any window.
		addEventListener("resize", onSize);
		// Paper is narrower than most windows, and nobody measures on it.
		const onPaper = () => setForm(tableIn(room), "cards");
		const offPaper = () => {
			decidedBy.current = decide(room);
		};
		addEventListener("beforeprint", onPaper);
		addEventListener("afterprint", offPaper);
		const observer = new ResizeObserver(onSize);
		if (ruler.current) observer.observe(ruler.current);
		return () => {
			removeEventListener("resize", onSize);
			removeEventListener("beforeprint", onPaper);
			removeEventListener("afterprint", offPaper);
			observer.disconnect();
		};
	}, []);

	return (
		<div ref={room}>
			{/* Without height: of the room itself the height changes with the form, which would be one more change of size to tell of. */}
			<div ref={ruler} />
			{children}
		</div>
	);
}

const sizesOf = ({ current }: RefObject<HTMLDivElement | null>): string => `${current?.clientWidth} ${innerWidth}`;

const tableIn = ({ current }: RefObject<HTMLDivElement | null>) => current?.querySelector("table");

function setForm(table: HTMLTableElement | null | undefined, form: TableForm): void {
	if (table) table.dataset.form = form;
}

/** The sizes by which it did. */
function decide(room: RefObject<HTMLDivElement | null>): string {
	const table = tableIn(room);
	if (!room.current || !table) return "";
	const roomPx = room.current.clientWidth;
	for (const form of formsOf(table)) {
		setForm(table, form);
		if (form === "cards" || table.offsetWidth <= roomPx) break;
	}
	return sizesOf(room);
}

function formsOf(table: HTMLTableElement): readonly TableForm[] {
	if (innerWidth <= ALWAYS_CARDS_PX) return ["cards"];
	const hasNames = table.querySelector(".clip-cell") !== null;
	return innerWidth <= NAMES_GIVE_WAY_PX && hasNames ? ["tight", "cards"] : ["whole", "tight", "cards"];
}
