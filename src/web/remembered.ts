/** A choice that this browser stores; lost on a reload if the browser has no storage. */
export const createStoredChoice = (name: string) => ({
	read() {
		try {
			return localStorage.getItem(name) || null;
		} catch {
			return null;
		}
	},
	write(value: string) {
		try {
			localStorage.setItem(name, value);
		} catch {
			// Without storage the choice still applies to the current page.
		}
	},
});
