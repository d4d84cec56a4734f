import { useEffect } from "react";

/** A page that shows, or is about to show, what cannot be had again: it stays until that is over. */

let holders = 0;
const waiting: (() => void)[] = [];

/** Does at once what takes the page away, or as soon as nothing holds it any more. */
export function whenFree(leave: () => void): void {
	if (holders === 0) leave();
	else if (!waiting.includes(leave)) waiting.push(leave);
}

/** The state of a step of its own in the history. */
const HELD = "held";

/** While `held` there is no step back, no leaving unasked, and no end by a session or an account that is gone. */
export function useHeldPage(held: boolean): void {
	useEffect(() => {
		if (!held) return;
		const ask = (event: BeforeUnloadEvent) => event.preventDefault();
		// Going back takes that step, and it is put there again.
		const stay = () => {
			if (history.state !== HELD) history.pushState(HELD, "", location.href);
		};
		holders += 1;
		stay();
		addEventListener("beforeunload", ask);
		addEventListener("popstate", stay);
		return () => {
			removeEventListener("beforeunload", ask);
			removeEventListener("popstate", stay);
			holders -= 1;
			// What was on its way may be shown now, and holds the page from here on.
			queueMicrotask(() => {
				if (holders === 0) for (const leave of waiting.splice(0)) leave();
			});
		};
	}, [held]);
}
