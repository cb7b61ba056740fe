// One step for many layers on a CPU, in two passes over memory. Built and called by _native.py.
//
// Pass one reads everything once: the products of Eq. 4, the base rule (Eq. 1), the deviation and its row norms.
// The gammas then move in torch, all at once. Pass two pulls the rows that strayed too far (Eq. 2).
#include <cmath>
#include <cstdint>

// the same fields, in the same order, as the structures in _native.py
struct Layer {
    void *param;
    const void *grad;
    const void *anchor;
    void *deviation;   // null in low-memory mode
    void *state[3];    // momentum, or Adam's two moments and their maximum
    int64_t length;    // of a row
    int64_t first_row; // of this layer among the rows of all layers
};
struct Task {          // some rows of one layer: what a thread takes at a time
    int64_t layer, start, stop;
};
template <typename T> struct Rule { // see TwoPass._numbers and TwoPass._corrections
    T sign; // -1 to maximize
    const T *numbers, *corrections;
    int64_t layers;
};
enum Kind { PLAIN, MOMENTUM, NESTEROV, ADAM, AMSGRAD };

namespace {

constexpr int64_t BLOCK = 1024; // elements summed in T before the sum goes on in double

template <typename T, int KIND, bool CACHED> void one(const Layer &layer, const Task &task, const Rule<T> &rule, T *dots, T *norms) {
    const T lr = rule.numbers[0], decay = rule.numbers[1], beta1 = rule.numbers[2], beta2 = rule.numbers[3];
    const T eps = rule.numbers[4], keep = 1 - lr * decay, rest1 = 1 - beta1, rest2 = 1 - beta2, sign = rule.sign;
    const T first_correction = rule.corrections[task.layer], second_correction = rule.corrections[rule.layers + task.layer];
    const T gain = KIND >= ADAM ? lr / -first_correction : first_correction;
    const T scale = KIND >= ADAM ? 1 / std::sqrt(-second_correction) : T(1);
    for (int64_t row = task.start; row < task.stop; ++row) {
        double dot = 0, norm = 0;
        for (int64_t start = 0; start < layer.length; start += BLOCK) {
            const int64_t at = row * layer.length + start;
            const int64_t count = layer.length - start < BLOCK ? layer.length - start : BLOCK;
            T *__restrict param = static_cast<T *>(layer.param) + at;
            const T *__restrict grad = static_cast<const T *>(layer.grad) + at;
            const T *__restrict anchor = static_cast<const T *>(layer.anchor) + at;
            T *__restrict deviation = CACHED ? static_cast<T *>(layer.deviation) + at : nullptr;
            T *__restrict first = KIND != PLAIN ? static_cast<T *>(layer.state[0]) + at : nullptr;
            T *__restrict second = KIND >= ADAM ? static_cast<T *>(layer.state[1]) + at : nullptr;
            T *__restrict largest = KIND == AMSGRAD ? static_cast<T *>(layer.state[2]) + at : nullptr;
            T dot_part = 0, norm_part = 0;
#pragma omp simd reduction(+ : dot_part, norm_part)
            for (int64_t i = 0; i < count; ++i) {
                const T w = param[i];
                T g = grad[i];
                dot_part += g * (CACHED ? deviation[i] : w - anchor[i]);
                g *= sign;
                T next;
                if (KIND >= ADAM) {
                    const T m = first[i] + rest1 * (g - first[i]);
                    T v = beta2 * second[i] + rest2 * g * g;
                    first[i] = m;
                    second[i] = v;
                    if (KIND == AMSGRAD) {
                        v = v > largest[i] ? v : largest[i];
                        largest[i] = v;
                    }
                    next = keep * w - gain * m / (std::sqrt(v) * scale + eps);
                } else {
                    g += decay * w;
                    if (KIND != PLAIN) {
                        const T m = beta1 * first[i] + gain * g;
                        first[i] = m;
                        g = KIND == NESTEROV ? g + beta1 * m : m;
                    }
                    next = w - lr * g;
                }
                const T d = next - anchor[i];
                param[i] = next;
                if (CACHED)
                    deviation[i] = d;
                norm_part += std::abs(d);
            }
            dot += dot_part;
            norm += norm_part;
        }
        dots[layer.first_row + row] = T(dot);
        norms[layer.first_row + row] = T(norm);
    }
}

template <typename T, int KIND>
void all(const Layer *layers, const Task *tasks, int64_t count, int threads, const Rule<T> &rule, T *dots, T *norms) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; ++i) {
        const Layer &layer = layers[tasks[i].layer];
        if (layer.deviation)
            one<T, KIND, true>(layer, tasks[i], rule, dots, norms);
        else
            one<T, KIND, false>(layer, tasks[i], rule, dots, norms);
    }
}

template <typename T>
void pass_one(const Layer *layers, const Task *tasks, int64_t count, int threads, int kind, int maximize,
              const T *numbers, const T *corrections, int64_t width, T *dots, T *norms) {
    const Rule<T> rule{maximize ? T(-1) : T(1), numbers, corrections, width};
    switch (kind) {
    case PLAIN: return all<T, PLAIN>(layers, tasks, count, threads, rule, dots, norms);
    case MOMENTUM: return all<T, MOMENTUM>(layers, tasks, count, threads, rule, dots, norms);
    case NESTEROV: return all<T, NESTEROV>(layers, tasks, count, threads, rule, dots, norms);
    case ADAM: return all<T, ADAM>(layers, tasks, count, threads, rule, dots, norms);
    case AMSGRAD: return all<T, AMSGRAD>(layers, tasks, count, threads, rule, dots, norms);
    }
}

template <typename T> void pass_two(const Layer *layers, const Task *tasks, int64_t count, int threads, const T *factors) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < count; ++i) {
        const Layer &layer = layers[tasks[i].layer];
        for (int64_t row = tasks[i].start; row < tasks[i].stop; ++row) {
            const T factor = factors[layer.first_row + row], rest = T(1) - factor;
            if (factor == T(1)) // within reach: left alone, bit for bit
                continue;
            T *__restrict param = static_cast<T *>(layer.param) + row * layer.length;
            const T *__restrict anchor = static_cast<const T *>(layer.anchor) + row * layer.length;
            if (factor < T(0.5)) // the two forms of torch.lerp
#pragma omp simd
                for (int64_t j = 0; j < layer.length; ++j)
                    param[j] = anchor[j] + factor * (param[j] - anchor[j]);
            else
#pragma omp simd
                for (int64_t j = 0; j < layer.length; ++j)
                    param[j] = param[j] - rest * (param[j] - anchor[j]);
        }
    }
}

} // namespace

#define FOR_DTYPE(BITS, T)                                                                                             \
    void pass_one_##BITS(const Layer *layers, const Task *tasks, int64_t count, int threads, int kind, int maximize,   \
                         const T *numbers, const T *corrections, int64_t width, T *dots, T *norms) {                   \
        pass_one(layers, tasks, count, threads, kind, maximize, numbers, corrections, width, dots, norms);             \
    }                                                                                                                  \
    void pass_two_##BITS(const Layer *layers, const Task *tasks, int64_t count, int threads, const T *factors) {       \
        pass_two(layers, tasks, count, threads, factors);                                                              \
    }
extern "C" {
FOR_DTYPE(32, float)
FOR_DTYPE(64, double)
}
