import { useEffect } from "react";

/** Keeps the page while it shows, or is about to show, a secret that cannot be shown again. */

let holders = 0;
const waiting: (() => void)[] = [];

/** Runs at once, or as soon as nothing holds the page. */
export function whenFree(leave: () => void): void {
	if (holders === 0) leave();
	else if (!waiting.includes(leave)) waiting.push(leave);
}

const HELD = "held";

/** While `held`: no step back, no unconfirmed leaving, and no end by a lost session or account. */
export function useHeldPage(held: boolean): void {
	useEffect(() => {
		if (!held) return;
		const ask = (event: BeforeUnloadEvent) => event.preventDefault();
		// Going back consumes the extra entry, and it is pushed again.
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
			// The secret may be shown now and holds the page from here on.
			queueMicrotask(() => {
				if (holders === 0) for (const leave of waiting.splice(0)) leave();
			});
		};
	}, [held]);
}
