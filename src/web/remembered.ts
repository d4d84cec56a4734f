/** A choice that this browser keeps; where storage is switched off it lasts until the next reload. */
export interface Remembered {
	read(): string | null;
	write(value: string): void;
}

export const createRemembered = (name: string): Remembered => ({
	read() {
		try {
			return localStorage.getItem(name) || null;
		} catch {
			return null;
		}
	},
	write(value) {
		try {
			localStorage.setItem(name, value);
		} catch {
			// What was chosen is on the page all the same.
		}
	},
});
