import { useEffect } from "react";

/** Number of components that block leaving the page, because they show a secret that cannot be shown again. */

let holders = 0;
const waiting: (() => void)[] = [];

/** Calls `leave` once no component blocks leaving. */
export function whenNotHeld(leave: () => void): void {
	if (holders === 0) leave();
	else if (!waiting.includes(leave)) waiting.push(leave);
}

const HELD = "held";

/** While `held`: blocks the back button, warns before the tab closes, and delays the redirect after a lost session. */
export function useHeldPage(held: boolean): void {
	useEffect(() => {
		if (!held) return;
		const ask = (event: BeforeUnloadEvent) => event.preventDefault();
		// Going back removes the extra history entry, so it is pushed again.
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
			// Later in this turn, because another component may begin to block.
			queueMicrotask(() => {
				if (holders === 0) for (const leave of waiting.splice(0)) leave();
			});
		};
	}, [held]);
}
